"""The gain of a draft size, compared with runs of that size."""

import pytest

from engine.core.decode import decode
from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.methods import drafter
from engine.parts.loading import load_models
from engine.rules import verifier
from engine.training import gains
from presets import family, prompts
from tests.verifiers.tiny import tiny_models

PROMPTS = {kind: [entry["prompt"] for entry in prompts(kind)[:2]] for kind in ("story", "template")}
NEW_TOKENS = 20


def run_with(cls, models, size: int) -> float:
    """Return the mean number of accepted drafted tokens per step plus the target's own token, with this draft size: the
    geometric mean of two workloads."""
    story, template = (mean_with(cls, models, size, some) for some in PROMPTS.values())
    return (story * template) ** 0.5


def mean_with(cls, models, size: int, some: list[str]) -> float:
    options = resolve(cls.key, cls.options, {cls.size_option: size})
    accepted = []
    for prompt in some:
        tokens = models.target.tokenizer(prompt)["input_ids"]
        made = cls.build(options, models)
        request = TextRequest(made, verifier("greedy"), Sampling(), tokens, NEW_TOKENS)
        steps = decode(models.target, request)
        accepted += [len(step.verdict.accepted) for step in steps]
    return 1 + sum(accepted) / len(accepted)


@pytest.mark.parametrize("key", ["suffix", "aded", "token_recycling", "suffix_hybrid"])
def test_a_gain_does_not_depend_on_the_sizes_measured_before(key, monkeypatch):
    """Drafters that learn must not copy texts that another size wrote after the same prompts."""
    cls, models = drafter(key), tiny_models(16)
    models.target.tokenizer = lambda text: {"input_ids": [ord(one) % 16 for one in text]}
    some = {"story": ["a red boat", "once upon"], "count": ["count to nine"]}
    monkeypatch.setattr(gains, "SIZES", (1, 4, 16))
    together = gains.gains(cls, models, some, NEW_TOKENS)
    for size, gain in together.items():
        monkeypatch.setattr(gains, "SIZES", (size,))
        assert gains.gains(cls, models, some, NEW_TOKENS) == {size: gain}


@pytest.mark.parametrize(
    ("key", "asked", "measured"), [("chain", (1, 9), [1, 9]), ("dflash", (1, 7, 9), [1, 7])]
)
def test_the_gains_are_what_runs_of_each_size_give(key, asked, measured, monkeypatch):
    cls = drafter(key)
    models = load_models(family(), cls.needs, "float32", "cpu")
    monkeypatch.setattr(gains, "SIZES", asked)
    found = gains.gains(cls, models, PROMPTS, NEW_TOKENS)
    assert list(found) == measured, "a block has 7 places"
    for size, gain in found.items():
        assert gain == pytest.approx(run_with(cls, models, size), abs=1e-3)
