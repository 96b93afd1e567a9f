"""A*-Decoding: what is right about a sum, and the search beside a plain script."""

from functools import cache

import pytest

from engine.core.sampling import Sampling, position_noise
from engine.methods.a_star.sums import share_right
from engine.parts.loading import load_models
from presets import family
from tests.drafters.writing import steps_of, text_of, usual

TEXT, SAMPLING, COUNT = "Add step by step: 47 + 85\n", Sampling(1.8, seed=3), 44


@pytest.mark.parametrize(
    "text, share",
    [
        ("", 1.0),
        ("Ones: 4 + 5 = 9, write 9, carry 0.\n", 1.0),
        ("Ones: 4 + 5 = 8, write 8, carry 0.\n", 0.5),
        ("Tens: 2 + 8 + 1 = 11, write 0, carry 1.\nHundreds: write 1.\n", 0.5),
        ("Ones: 9 * 4 = 36, write 6, carry 3.\nOnce upon a time.\n", 2 / 3),
        ("Ones: 6 - 9, borrow: 16 - 9 = 7, write 7, borrow 1.\n", 1.0),
        ("Hundreds 1, tens 3, ones 2.\nAnswer: 132", 1.0),
    ],
)
def test_the_share_of_right_statements(text, share):
    assert share_right(text) == pytest.approx(share)


@cache
def models():
    return load_models(family(), {})


def drawn(text, place, seed):
    """A token by plain sampling."""
    target = models().target
    logits = target.session(len(text)).extend(text).float()
    p = (logits / SAMPLING.temperature).softmax(-1)
    return int((p / position_noise(seed, place, len(p))).argmax())


def searched(prompt, branches, expansions):
    """(text, states reached on the way), every text read from its beginning."""
    target = models().target
    ends, said = target.end_tokens, target.tokenizer.decode
    states, seed, expanded, reached = (
        [(0.0, 0, (), 0.0)],
        SAMPLING.seed,
        0,
        0,
    )  # f, minus length, path, h
    while True:
        f, _, path, h = states.pop(0)
        if path and (path[-1] in ends or len(path) == COUNT):
            return list(path), reached
        for _ in range(branches if expanded < expansions else 1):
            new = path
            while new == path or not (
                new[-1] in ends
                or len(new) == COUNT
                or ("\n" in said([new[-1]]) and said(new[len(path) :]).strip())
            ):
                text = [*prompt, *new]
                new += (drawn(text, len(text), seed),)
            seed += 1_000_003
            if all(state[2] != new for state in states):
                below = 1 - share_right(said([token for token in new if token not in ends]))
                g = f - h + max(0.0, below - h)
                states.append((g + below, -len(new), new, below))
                reached += 1
        expanded += 1
        states.sort(key=lambda state: state[:2])


def test_the_search_is_that_of_the_plain_script():
    prompt = models().target.tokenizer(TEXT)["input_ids"]
    made = usual("a_star", models(), branches=3, expansions=2)
    written = text_of(steps_of(models(), made, prompt, COUNT, SAMPLING, "sampler_match"))
    expected, reached = searched(prompt, 3, 2)
    assert written == expected and reached > 3
