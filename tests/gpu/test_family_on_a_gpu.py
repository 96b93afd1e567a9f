"""The embedded family on a GPU: captured passes and compiled kernels write what a CPU writes."""

from functools import cache

import pytest

from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.methods import drafters
from engine.parts.loading import load_models
from engine.sizes.draft_size import settle_size
from presets import family, prompts
from tests.engine.family import exact, tokens_of, trace_of
from tests.engine.unrecorded import JUDGED, assert_same, steps_of

TOKENS = 40
RULES = [
    ("greedy", Sampling()),
    ("rejection", Sampling(0.9, seed=3)),
    ("rejection", Sampling(1.1, top_k=50, top_p=0.8, seed=4)),
    ("sampler_match", Sampling(0.9, top_p=0.95, seed=1)),
]


def prompt_of(kind: str) -> str:
    return prompts(kind)[1]["prompt"]


@cache
def plain(kind: str, **sampling) -> list[int]:
    """The text of plain decoding on the CPU."""
    fields = {"drafter": "none", "max_new_tokens": TOKENS, **sampling}
    return tokens_of(trace_of(prompt_of(kind), device="cpu", dtype="float32", **fields))


@pytest.mark.parametrize("key", exact())
def test_text_is_that_of_a_cpu(key):
    for kind in ("story", "edit"):
        fields = {"drafter": key, "max_new_tokens": TOKENS, "device": "cuda", "dtype": "float32"}
        assert tokens_of(trace_of(prompt_of(kind), **fields)) == plain(kind)
        match = {"temperature": 0.8, "top_p": 0.95, "seed": 7}
        found = tokens_of(trace_of(prompt_of(kind), verifier="sampler_match", **fields, **match))
        assert found == plain(kind, verifier="sampler_match", **match)


BY_THE_CLOCK = {"smartspec"}  # its drafts are as long as the measured speed suggests


@pytest.mark.parametrize(
    "key", [key for key in JUDGED if key in exact() and key not in BY_THE_CLOCK]
)
def test_an_unrecorded_text_is_that_of_a_recorded_run(key):
    """Judged within the pass, kept rows moved by the kernel, drafts left on the device."""
    cls = drafters()[key]
    models = load_models(family(), cls.needs, "float32", "cuda")
    prompt = models.target.tokenizer(prompt_of("story"))["input_ids"]
    for rule, sampling in RULES:
        options = settle_size(cls, resolve(key, cls.options, {}), models, sampling)

        def run(recorded, options=options, rule=rule, sampling=sampling):
            drafter = cls.build(options, models)
            return steps_of(models, drafter, rule, sampling, recorded, prompt, TOKENS)

        expected = run(True)
        for _ in range(2):  # the second run replays what the first captured
            assert_same(run(False), expected)
