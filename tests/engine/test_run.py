"""Opening runs."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.errors import UserError
from engine.loops import run_loop
from engine.methods import drafters
from engine.methods.none.drafter import NoDrafter
from engine.methods.shared.denoiser_part import open_denoiser
from engine.parts.models import open_model
from engine.parts.opening import language_model
from engine.rules import verifier
from engine.run import open_run
from tests.engine.family import offered, request
from tests.engine.tiny import tiny_hf_model


@pytest.mark.exhaustive
def test_models_are_opened_by_several_threads_at_once():
    """transformers loads models through global state, in which the first runs of two visitors must not interfere."""
    open_model.cache_clear()
    open_denoiser.cache_clear()
    keys = offered()
    with ThreadPoolExecutor(len(keys)) as pool:
        runs = list(pool.map(lambda key: open_run(request("A cat", drafter=key)), keys))
    assert all(run.step() for run in runs)
    kinds = {role: kind for key in keys for role, kind in drafters()[key].needs.items()}
    models = sum(kind in ("draft", "nested_draft", "foreign_draft") for kind in kinds.values())
    found = open_model.cache_info().misses, open_denoiser.cache_info().misses
    assert found == (1 + models, 1), "target, drafts and diffusion drafter, each opened once"


@pytest.mark.parametrize("key", ["chain", "token_recycling"])
def test_an_unrecorded_run_writes_the_same(key):
    recorded, brief = (
        open_run(request("The cat sat on", drafter=key, max_new_tokens=16, recorded=recorded))
        for recorded in (True, False)
    )
    full, short = ([json.loads(line) for line in run.steps()] for run in (recorded, brief))
    assert [one["output"] for one in short] == [one["output"] for one in full]
    assert all("nodes" not in one for one in short)
    assert json.loads(brief.summary())["text"] == json.loads(recorded.summary())["text"]


@pytest.mark.parametrize("rule", ["greedy", "rejection", "sampler_match"])
def test_a_target_that_gives_nan_ends_the_run_with_a_sentence(rule):
    module = tiny_hf_model("llama")
    module.lm_head.weight.data[3] = float("nan")
    target = language_model(module, None, "broken")
    sampling = Sampling(0.0 if rule == "greedy" else 0.8)
    text = TextRequest(NoDrafter({}), verifier(rule), sampling, [1, 2, 3], 4)
    with pytest.raises(UserError, match="broken gave NaN"):
        list(run_loop(target, text))
