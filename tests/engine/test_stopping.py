"""When a drafter stops asking its draft model."""

from functools import cache
from itertools import accumulate
from operator import mul

import pytest

from engine.core.sampling import Sampling
from engine.methods import drafter
from engine.parts.loading import load_models
from presets import family
from tests.drafters.writing import steps_of, text_of, usual

PROMPT, SIZE, TOKENS = "Once upon a time, there was a little", 8, 48
GREEDY, DRAWN = Sampling(), Sampling(temperature=1.0, seed=5)


@cache
def run(key: str, stop_below: float, sampling=GREEDY):
    """Return (the trees of the steps that had room for the whole size, the text)."""
    cls = drafter(key)
    models = load_models(family(), cls.needs, "float32", "cpu")
    made = usual(cls, models, **{cls.size_option: SIZE, "stop_below": stop_below})
    tokens = models.target.tokenizer(PROMPT)["input_ids"]
    steps = steps_of(models, made, tokens, TOKENS, sampling)
    last = len(tokens) + TOKENS - SIZE
    whole = [step.tree for step in steps if step.position < last]
    return whole, text_of(steps)


@pytest.mark.parametrize("stop_below", [0.25, 0.7])
def test_a_chain_ends_with_the_first_token_that_makes_it_unlikely(stop_below):
    trees, text = run("chain", stop_below)
    for tree in trees:
        *before, last = accumulate(tree.q, mul)
        assert all(chance >= stop_below for chance in before)
        assert last < stop_below or len(tree) == SIZE
    assert len({len(tree) for tree in trees}) > 1, "they are not simply all of one length"
    assert run("chain", 0.0)[1] == text


def test_a_tree_that_stops_is_read_less_and_says_the_same():
    cls, read = drafter("dyspec"), []
    expand = cls._read

    class Counted(cls):
        def _read(self, growth, leaves):
            read.append(len(leaves))
            expand(self, growth, leaves)

    models = load_models(family(), cls.needs, "float32", "cpu")
    tokens = models.target.tokenizer(PROMPT)["input_ids"]
    texts, reads = [], []
    for stop_below in (0.0, 0.6, 1.0):
        made = usual(Counted, models, budget=16, stop_below=stop_below)
        steps = steps_of(models, made, tokens, TOKENS)
        texts.append(text_of(steps))
        reads.append(len(read) / len(steps))
        read.clear()
    assert texts[0] == texts[1] == texts[2]
    assert reads[0] > reads[1] > reads[2]


@pytest.mark.parametrize("key", ["chain", "dyspec"])
def test_without_a_stop_and_with_drawn_tokens_the_size_is_filled(key):
    assert all(len(tree) == SIZE for tree in run(key, 0.0)[0])
    drawn, text = run(key, 1.0, DRAWN)
    whole, same = run(key, 0.0, DRAWN)
    assert [tree.tokens for tree in drawn] == [tree.tokens for tree in whole] and text == same
