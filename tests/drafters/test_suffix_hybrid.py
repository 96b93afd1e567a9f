"""The hybrid of copies and a draft model: who drafts, and what the draft model has read after copies."""

import pytest

from engine.core.sampling import Sampling
from tests.drafters.writing import begun, steps_of
from tests.verifiers.tiny import shared_models

KEY = "suffix_hybrid"
TEXT = [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3]


def sources(step) -> set[str]:
    return set(step.tree.sources)


@pytest.mark.parametrize("threshold, copied", [(6.0, True), (6.1, False)])
def test_the_score_decides(threshold, copied):
    """Three tokens match and pay for six; each of the six is certain, as the text went on in one way only."""
    tree = steps_of(shared_models(16), KEY, TEXT, 30, threshold=threshold, factor=2.0)[0].tree
    assert set(tree.sources) == {"this text" if copied else "draft model"}
    assert (tree.tokens == [4, 5, 6, 7, 8, 9]) == copied
    gauge = tree.exhibits[-1]
    assert (gauge.value, gauge.mark) == (pytest.approx(6.0), threshold)


def test_without_a_match_the_draft_model_drafts():
    tree = steps_of(shared_models(16), KEY, [1, 2, 3, 4], 30, threshold=0.0)[0].tree
    assert set(tree.sources) == {"draft model"}
    assert tree.exhibits[-1].value == 0.0


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=1.0, seed=3)])
def test_after_copies_the_draft_model_knows_the_whole_text(sampling):
    """Wherever the draft model drafts, it drafts as a chain that begins there: the same tokens and the same q."""
    models, mixed = shared_models(16), 0
    written, before = list(TEXT), set()
    for step in begun(models, KEY, TEXT, 40, sampling, threshold=3.0, length=3):
        if sources(step) == {"draft model"} and before == {"this text"} and sampling.greedy:
            fresh = steps_of(models, "chain", written, 20, length=3)[0].tree
            count = min(len(fresh), len(step.tree))
            assert count and step.tree.tokens[:count] == fresh.tokens[:count]
            assert step.tree.q[:count] == pytest.approx(fresh.q[:count], abs=1e-5)
            mixed += 1
        elif sources(step) and sources(step) != before:
            mixed += not sampling.greedy
        before = sources(step)
        written += step.output
    assert mixed, "the text has to change between both"
