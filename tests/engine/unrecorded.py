"""Runs of every drafter on tiny models, and the comparison of an unrecorded run with a recorded one."""

from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.loops import run_loop
from engine.methods import drafters
from engine.rules import verifier

PROMPT = [3, 5, 7, 3, 5]
RULES = [
    ("greedy", Sampling()),
    ("rejection", Sampling(0.9, seed=3)),
    ("rejection", Sampling(1.1, top_k=9, top_p=0.8, seed=4)),
    ("sampler_match", Sampling(0.9, seed=1)),
]
JUDGED = [
    key for key, cls in drafters().items() if not cls.mixed_siblings and cls.loop == "speculative"
]
"""Drafters whose trees the device can judge, in the loop in which it judges them."""


def steps_of(models, drafter, rule, sampling, recorded, prompt=PROMPT, count=20) -> list:
    request = TextRequest(drafter, verifier(rule), sampling, prompt, count)
    return list(run_loop(models.target, request, recorded))


def texts(steps) -> list[list[int]]:
    return [step.output for step in steps]


def assert_same(found: list, expected: list) -> None:
    """Compares texts, and trees as far as an unrecorded step knows their tokens."""
    assert texts(found) == texts(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.tree.parents == theirs.tree.parents
        assert (ours.verdict.status, ours.final) == (theirs.verdict.status, theirs.final)
        for one, other in zip(ours.tree.tokens, theirs.tree.tokens, strict=True):
            assert one in (-1, other)
        assert ours.p is None and ours.logits is None and not ours.verdict.judgements
