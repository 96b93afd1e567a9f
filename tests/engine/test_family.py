"""Losslessness on the embedded family, against transformers' own loop.

One prompt for each drafter; ``test_family_graphs.py`` takes twenty of each workload. The greedy texts of every second
drafter are checked where their traces are (``test_trace.py``).
"""

import warnings
from functools import cache

import pytest
import torch

from engine.methods import drafter
from engine.model.generation import ends_of
from presets import KINDS, prompts
from tests.engine.family import (
    embedded_module,
    embedded_tokenizer,
    exact,
    offered,
    tokens_of,
    trace_of,
)
from tests.grids import some

NEW_TOKENS, SAMPLED_TOKENS = 32, 16
MARGIN = 1e-4  # below this, the two largest logits tie in fp32, and a difference is numerics
EXACT = exact()
GREEDILY_TRACED = offered()[1::2]
"""Drafters whose greedy runs ``test_trace.py`` makes and compares with the same loop."""


@cache
def plain(prompt: str) -> tuple[int, ...]:
    """The tokens that AutoModelForCausalLM.generate(do_sample=False) writes after the prompt."""
    model, tokenizer = embedded_module(), embedded_tokenizer()
    tokens = tokenizer(prompt, return_tensors="pt")
    ends = sorted(ends_of(model, tokenizer).tokens)
    out = model.generate(**tokens, max_new_tokens=NEW_TOKENS, do_sample=False, eos_token_id=ends)
    return tuple(out[0, tokens["input_ids"].shape[1] :].tolist())


def margin(prompt: str, before: tuple[int, ...]) -> float:
    """The distance between the target's two largest logits after the prompt and ``before``."""
    model, tokenizer = embedded_module(), embedded_tokenizer()
    tokens = tokenizer(prompt)["input_ids"] + list(before)
    with torch.no_grad():
        best = model(torch.tensor([tokens])).logits[0, -1].topk(2).values
    return float(best[0] - best[1])


def assert_same(prompt: str, expected: tuple[int, ...], got: tuple[int, ...]) -> None:
    """The tokens are equal, or the first difference is at a token where the target itself is undecided."""
    if got == expected:
        return
    pairs = zip(expected, got, strict=False)
    at = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(expected), len(got)))
    tie = margin(prompt, expected[:at])
    assert tie < MARGIN, f"token {at} differs, top-2 margin {tie:.2g}, after {prompt!r}"
    warnings.warn(f"numerics: token {at} differs, top-2 margin {tie:.2g}", stacklevel=2)


def check_greedy(key: str, kind: str, index: int) -> None:
    prompt = prompts(kind)[index]["prompt"]
    trace = trace_of(prompt, drafter=key, max_new_tokens=NEW_TOKENS)
    rule = trace.run["verifier"]
    assert (rule["key"], rule["lossless"], rule["options"]) == ("greedy", True, {})
    assert_same(prompt, plain(prompt), tuple(tokens_of(trace)))


GREEDY = some(EXACT, lambda key: key not in GREEDILY_TRACED)


@pytest.mark.parametrize("key", GREEDY)
def test_greedy_is_plain_decoding(key):
    """Drafters without parts copy, so they get a text to edit."""
    check_greedy(key, *(("story", 0) if drafter(key).needs else ("edit", 1)))


@cache
def plain_sampling(kind: str, seed: int = 7) -> list[int]:
    return sampled(kind, "none", seed)


def sampled(kind: str, key: str, seed: int = 7) -> list[int]:
    drawn = {"verifier": "sampler_match", "temperature": 0.8, "top_p": 0.95, "seed": seed}
    prompt = prompts(kind)[0]["prompt"]
    return tokens_of(trace_of(prompt, drafter=key, max_new_tokens=SAMPLED_TOKENS, **drawn))


def shape(key: str) -> tuple[str, str]:
    """Return what the rule can tell of a drafter: the shape of its drafts, and the loop in which they are judged."""
    cls = drafter(key)
    return cls.family, cls.loop


FIRST = {shape(key): key for key in reversed(EXACT)}
SAMPLED = some(
    [(key, kind) for key in EXACT for kind in KINDS],
    lambda case: FIRST[shape(case[0])] == case[0] and case[1] == "story",
)
"""``make test`` takes the first drafter of each shape: no other code draws the tokens of the others."""


@pytest.mark.parametrize("key, kind", SAMPLED)
def test_sampler_match_writes_the_text_of_plain_sampling(key, kind):
    assert sampled(kind, key) == plain_sampling(kind)


def test_another_seed_writes_another_text():
    assert plain_sampling("story", 8) != plain_sampling("story")
