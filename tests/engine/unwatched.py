"""Runs of every drafter on tiny models, and what makes an unwatched one the same as a watched one."""

from engine.decode import decode
from engine.drafters import drafters
from engine.drafters.base import Drafter
from engine.options import resolve
from engine.parts.loading import Models
from engine.sampling import Sampling
from engine.verifiers import verifier

PROMPT = [3, 5, 7, 3, 5]
OPTIONS = {
    "none": {},
    "chain": {"length": 3},
    "dyspec": {"budget": 7, "depth": 3, "width": 2},
    "prompt_lookup": {"length": 4, "max_ngram": 2},
    "dflash": {"length": 3},
    "ddtree": {"length": 3, "budget": 9},
}
RULES = [
    ("greedy", Sampling()),
    ("rejection", Sampling(0.9, seed=3)),
    ("rejection", Sampling(1.1, top_k=9, top_p=0.8, seed=4)),
    ("sampler_match", Sampling(0.9, seed=5)),
]


def built(key: str, models: Models) -> Drafter:
    cls = drafters()[key]
    return cls.build(resolve(key, cls.options, OPTIONS[key]), models)


def steps_of(models, drafter, rule, sampling, watched, prompt=PROMPT, count=30) -> list:
    given = verifier(rule), sampling, prompt, count
    return list(decode(models.target, drafter, *given, watched))


def texts(steps) -> list[list[int]]:
    return [step.output for step in steps]


def assert_same(found: list, expected: list) -> None:
    """Texts and trees, as far as an unwatched step knows its tokens."""
    assert texts(found) == texts(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.tree.parents == theirs.tree.parents
        assert (ours.verdict.status, ours.final) == (theirs.verdict.status, theirs.final)
        for one, other in zip(ours.tree.tokens, theirs.tree.tokens, strict=True):
            assert one in (-1, other)
        assert ours.p is None and ours.logits is None and not ours.verdict.judgements
