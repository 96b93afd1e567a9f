"""What is refused before a model is opened, and what the stations of a run hand on."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from engine.core.sampling import Sampling
from engine.errors import UserError
from engine.methods import drafter, drafters
from engine.methods.shared.denoiser_part import open_denoiser
from engine.parts.loading import ModelPaths
from engine.parts.models import open_model
from engine.rules import rule_class
from engine.run import MAX_NEW_TOKENS, Opened, Plan, RunRequest, begin, open_run, rule_for
from tests.engine.family import offered, request

NOWHERE = ModelPaths("no/such/folder", {"draft": "no/such/draft"})
MISTAKES = {
    "no such drafter": ({"drafter": "chian"}, "chian"),
    "no such option": ({"options": {"lenght": 2}}, "lenght"),
    "an option out of range": ({"options": {"length": 99}}, "length"),
    "an option that is no number": ({"options": {"length": "x"}}, "length"),
    "no such rule": ({"verifier": "rejecton"}, "rejecton"),
    "no such rule, the model's own sampling": ({"verifier": "rejecton", "own_sampling": True}, "rejecton"),
    "no such option of the rule": ({"rule_options": {"share": 1}}, "share"),
    "a greedy rule for drawn tokens": ({"verifier": "greedy", "temperature": 1.0}, "temperature 0 only"),
    "a temperature below zero": ({"temperature": -1.0}, "temperature"),
    "no share of the nucleus": ({"top_p": 0.0}, "[Tt]op-p"),
    "fewer than no tokens": ({"top_k": -3}, "[Tt]op-k"),
    "a negative seed": ({"seed": -1}, "seed"),
    "no new tokens": ({"max_new_tokens": 0}, "new tokens"),
    "too many new tokens": ({"max_new_tokens": MAX_NEW_TOKENS + 1}, "new tokens"),
    "an empty prompt": ({"prompt": " \n"}, "prompt is empty"),
    "a conversation without a question": ({"messages": [{"role": "assistant", "content": "Hello"}]}, "last turn"),
    "an empty stop string": ({"stop": [""]}, "stop string"),
    "a schema that is none": ({"json_schema": "[1]"}, "JSON schema"),
    "no such dtype": ({"dtype": "float3"}, "float3"),
    "no such device": ({"device": "abacus"}, "abacus"),
    "a part that is missing": ({"drafter": "chain", "models": ModelPaths("no/such/folder")}, "--draft DIR"),
    "more nodes than are allowed": ({"drafter": "chain", "options": {"length": 16}, "most_nodes": 4}, "at most 4"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_plan_refuses_in_one_sentence_what_can_be_known_without_models(mistake):
    fields, told = MISTAKES[mistake]
    wanted = RunRequest(**{"prompt": "Once", "models": NOWHERE, **fields})
    for check in (Plan.of, open_run):
        with pytest.raises(UserError, match=told) as refusal:
            check(wanted)
        assert str(refusal.value).count("\n") == 0 and "folder" not in str(refusal.value)


def test_a_plan_opens_nothing():
    plan = Plan.of(RunRequest("Once", NOWHERE, options={"length": "3"}, temperature=0.5, seed=4))
    assert plan.drafter is drafter("auto") and plan.options["length"] == 3
    assert plan.sampling == Sampling(0.5, seed=4)
    assert plan.rule is rule_class(drafter("auto").default_verifier)
    with pytest.raises(UserError, match="folder"):
        Opened.of(plan)


def test_the_rule_of_a_models_own_sampling_waits_for_the_model():
    plan = Plan.of(request("Once", own_sampling=True, temperature=-1.0))
    assert plan.sampling is None and plan.rule is None
    opened = Opened.of(plan).plan
    assert opened.sampling == Sampling() and opened.rule is rule_for(
        None, opened.drafter, Sampling()
    )


def test_several_runs_of_one_opening_write_the_same():
    opened = Opened.of(Plan.of(request("The cat sat on", drafter="chain", max_new_tokens=8)))
    runs = begin([opened, opened])
    first, second = ([json.loads(line)["output"] for line in run.steps()] for run in runs)
    assert first == second
    assert json.loads(runs[0].header())["drafter"]["options"] == opened.options


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
