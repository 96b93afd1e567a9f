"""Cover encodings: the law of the next letter, beside one that is worked out from all rows of tokens."""

import itertools
from functools import cache

import pytest
import torch

from engine.core.tree import ROOT, DraftTree
from engine.methods.bytewise.covers import Covers
from engine.methods.bytewise.judged_letters import DrawnString, JudgedString
from engine.methods.bytewise.letters import Vocabulary

WRITTEN = ((0,), (1,), (0, 1), (0, 1, 0), (0, 0, 1))
ONLY_DRAFTED, ALONE, SIZE = 2, 3, 4
VOCABULARY = Vocabulary([*WRITTEN, ()], ALONE, SIZE)
EXACT, BIASED = 1e-12, 1e-4


def canonical(letters):
    """Cut these letters into tokens, the longest token first, as the tokenizer of this test does."""
    path = []
    while letters:
        size = next(n for n in (3, 2, 1) if tuple(letters[:n]) in WRITTEN)
        path.append(WRITTEN.index(tuple(letters[:size])))
        letters = letters[size:]
    return tuple(path)


def spelled(path):
    return tuple(letter for token in path for letter in VOCABULARY.strings[token])


class Model:
    """A model with random laws of tokens that depend on all tokens before. canonical: whether it writes as the
    tokenizer of this test cuts."""

    def __init__(self, seed, canonical=False):
        self._generator = torch.Generator().manual_seed(seed)
        self._canonical = canonical
        self.law, self.chance = cache(self._law), cache(self._chance)

    def _law(self, path):
        p = torch.rand(len(WRITTEN) + 1, generator=self._generator, dtype=torch.float64)
        if self._canonical:
            p[-1] = 0
            for token in range(len(WRITTEN)):
                longer = (*path, token)
                p[token] *= canonical(spelled(longer)) == longer
        return p / p.sum()

    def _chance(self, letters, path=()):
        """Return the chance that the text behind the path begins with these letters, over all rows of tokens."""
        found = 0.0
        for token, p in enumerate(self.law(path).tolist()):
            string = VOCABULARY.strings[token]
            if string[: len(letters)] == letters:
                found += p
            elif letters[: len(string)] == string and p:
                found += p * self.chance(letters[len(string) :], (*path, token))
        return found


def law_of(model, letters, opened):
    """Return the law of the next letter behind these letters. opened: (path) -> whether a token may begin there."""
    covers = Covers(VOCABULARY, (), model.law(()))
    for letter in letters:
        for cover in covers.go(letter):
            path = (*cover.place, cover.token)
            if opened(path):
                covers.open(path, cover.weight, model.law(path))
    return covers.law()


@pytest.mark.parametrize("seed", range(5))
def test_the_law_of_the_next_letter_sums_over_all_ways_to_cut_the_text(seed):
    model = Model(seed)
    for letters in itertools.product((0, 1), repeat=5):
        law = law_of(model, letters, lambda path: True)
        for letter in range(SIZE):
            truth = model.chance((*letters, letter)) / model.chance(letters)
            assert float(law[letter]) == pytest.approx(truth, abs=EXACT)


@pytest.mark.parametrize("seed", range(5))
def test_the_tokenizer_s_own_ways_are_enough_for_a_model_that_takes_no_others(seed):
    own, free = Model(seed, canonical=True), Model(seed)
    errors = []
    for letters in itertools.product((0, 1), repeat=5):
        for model in (own, free):
            if model.chance(letters) > 0:
                law = law_of(model, letters, lambda path: canonical(spelled(path)) == path)
                longer = [model.chance((*letters, letter)) for letter in range(SIZE)]
                truth = torch.tensor(longer, dtype=law.dtype) / model.chance(letters)
                errors.append((model, float((law - truth).abs().max())))
    assert max(error for model, error in errors if model is own) < EXACT
    assert max(error for model, error in errors if model is free) > BIASED


def drawn(letters, laws, skip):
    """Return a drawn string, and a tree with a node for the end of each beginning. skip: (letters, end) -> whether that
    end gets no node."""
    tree, places = DraftTree(), {0: ROOT}
    for end in range(1, len(letters) + 1):
        for start in sorted(places):
            token = VOCABULARY.token_of.get(letters[start:end])
            if token is not None and not skip(letters, end):
                places[end] = tree.draw(places[start], token)
                break
    return DrawnString(VOCABULARY, list(letters), laws), tree


def continued(model, path, chance, law):
    """Add to ``law`` the chances of all rows of three tokens that begin with the path."""
    if len(path) >= 3:
        law[path[:3]] = law.get(path[:3], 0.0) + chance
        return
    for token, p in enumerate(model.law(path).tolist()):
        continued(model, (*path, token), chance * p, law)


class Overlooking(JudgedString):
    """A fault: it goes on as if no token could end without a node. This is the beam form, which follows only some of
    the ways to cut the letters."""

    def _opened(self, cover):
        super()._opened(cover)
        return True


def judged_error(seed, cls=JudgedString, skip=lambda letters, end: False):
    """Return how far the law of three tokens is from the target's, over all strings of four letters from random
    laws."""
    model, generator = Model(seed), torch.Generator().manual_seed(seed + 100)

    @cache
    def law_behind(letters):
        law = torch.rand(SIZE, generator=generator, dtype=torch.float64)
        law[ALONE] = 0
        return law / law.sum()

    found = {}
    for letters in itertools.product(range(ALONE), repeat=4):
        laws = torch.stack([law_behind(letters[:end]) for end in range(4)])
        chance = float(laws[range(4), letters].prod())
        string, tree = drawn(letters, laws, skip)
        paths = [(), *(tuple(tree.tokens[n] for n in tree.path(node)) for node in range(len(tree)))]
        p = torch.stack([model.law(path) for path in paths])
        outcomes = cls(string, tree, p).outcomes
        if cls is Overlooking:
            outcomes /= outcomes.sum()
        assert float(outcomes.sum()) == pytest.approx(1) and (outcomes >= 0).all()
        for place, token in outcomes.nonzero().tolist():
            share = chance * float(outcomes[place, token])
            continued(model, (*paths[place], token), share, found)
    truth = {}
    continued(model, (), 1.0, truth)
    return max(abs(found.get(path, 0.0) - truth[path]) for path in truth)


@pytest.mark.parametrize("seed", range(3))
def test_a_judged_string_writes_the_target_s_tokens(seed):
    assert judged_error(seed) < EXACT
    assert judged_error(seed, skip=lambda letters, end: end == 2) < EXACT, "any tree will do"


@pytest.mark.parametrize("seed", range(3))
def test_nearly_right_ways_to_judge_are_biased(seed):
    assert judged_error(seed, Overlooking) > BIASED
    assert judged_error(seed, skip=lambda letters, end: letters[-1] == 0) > BIASED, (
        "whether a node is there says what comes later"
    )
