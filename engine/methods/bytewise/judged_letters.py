"""Judges a drawn string of letters, letter by letter, by the target's covers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.core.tree import ROOT, DraftTree
from engine.methods.bytewise.covers import Covers, Ended
from engine.methods.bytewise.letters import Vocabulary


@dataclass(frozen=True)
class DrawnString:
    """A string of letters that a draft model has drawn, for the rule that judges its letters.

    vocabulary: the target's tokens as strings of letters. letters: the M letters of the string. laws: [M, A], for an
    alphabet of A letters; row i is the law from which letter i was drawn, given the letters before it.
    """

    vocabulary: Vocabulary
    letters: list[int]
    laws: Tensor


@dataclass(frozen=True)
class JudgedLetter:
    """One judged letter. q, p: the letter's probabilities by the draft model and by the target, given the letters
    before it. accept: the chance that the letter is kept. ends: if the letter is kept, the chance that a token of the
    target ends with it."""

    letter: int
    q: float
    p: float
    accept: float
    ends: float


class JudgedString:
    """All possible outcomes of judging a drawn string of letters, with their chances.

    A letter x is kept with the chance min(1, p(x) / q(x)), where p is the target's law of the next letter; a refused
    letter is replaced by a draw from the residual. p is computed from the covers of the letters before x (the sequences
    of the target's tokens that spell them). Only covers are used whose tokens, up to the last one, are a path of the
    tree.

    If a token of the target could end with the kept letter, but the tree has no node for this token, it is drawn
    whether the token does end there; if so, nothing of the string after this letter is kept. In the end the target's
    tokens are drawn, given that they spell the letters that were kept or replaced, and that the last token reaches or
    passes the end of these letters. So a step writes tokens by the target's own law, whichever nodes the tree has,
    provided that the presence of a node depends only on the letters that lead to it.

    outcomes: float64 [N+1, V]; the chance that the step keeps the path to the root (row 0) or to node i (row i+1), and
    then ends with this token of the target's own. letters: the judged letters.
    """

    def __init__(self, string: DrawnString, tree: DraftTree, p: Tensor) -> None:
        """p: float64 [N+1, V], the target's laws after the root and each node."""
        self.outcomes, self.letters = torch.zeros_like(p), []
        self._tree, self._p = tree, p
        ways = zip(tree.parents, tree.tokens, strict=True)
        self._nodes = {way: node for node, way in enumerate(ways)}
        self._covers, alive = Covers(string.vocabulary, ROOT, p[0]), 1.0
        for letter, q in zip(string.letters, string.laws, strict=True):
            if alive > 0:
                alive = self._judge(letter, q, alive)
        if alive > 0:
            self._spread(alive, torch.ones(string.vocabulary.size, dtype=p.dtype))

    def _judge(self, letter: int, q: Tensor, alive: float) -> float:
        """Judge the next letter. alive: the chance that all letters before it are kept. Returns the chance that the
        string is kept up to and including this letter, and that the next letter is judged as well."""
        p = self._covers.law()
        accept = min(1.0, float(p[letter] / q[letter]))
        residual = (p - q).clamp_(min=0)
        if accept < 1 and residual.sum() > 0:
            share = residual / residual.sum() / p.clamp(min=1e-300)
            self._spread(alive * (1 - accept), share)
        ended = self._covers.go(letter)
        whole = self._covers.mass + sum(cover.weight for cover in ended)
        ends = 1 - self._covers.mass / whole if whole > 0 else 0.0
        self.letters.append(JudgedLetter(letter, float(q[letter]), float(p[letter]), accept, ends))
        if whole <= 0:
            return 0.0
        for cover in ended:
            if not self._opened(cover):
                chance = alive * accept * cover.weight / whole
                self.outcomes[cover.place + 1, cover.token] += chance
        return alive * accept * self._covers.mass / whole

    def _opened(self, cover: Ended) -> bool:
        """Whether the tree has a node for the last token of this cover. If it has, let the next token begin after that
        node."""
        node = self._nodes.get((cover.place, cover.token))
        if node is None:
            return False
        self._covers.open(node, cover.weight, self._p[node + 1])
        return True

    def _spread(self, chance: float, share: Tensor) -> None:
        """Record in ``outcomes`` that, with this chance, the string is kept only up to here, and that the target's
        token is then drawn from the covers. The weight of a cover in this draw is multiplied by the share of the
        cover's next letter. share: [A], one factor for each letter."""
        chance /= self._covers.mass
        for ways in self._covers.begun:
            self.outcomes[ways.place + 1, ways.tokens] += chance * share[ways.column] * ways.weights

    def laws(self) -> Tensor:
        """Return the chance, float64 [N+1, V], that a step keeps the path to the root (row 0) or to node i (row i+1)
        and that this token comes next, as a child in the tree or as the target's own token. A row, scaled to sum to 1,
        is the law of the next token after its node."""
        laws = self.outcomes.clone()
        for node in reversed(range(len(self._tree))):
            laws[self._tree.parents[node] + 1, self._tree.tokens[node]] += laws[node + 1].sum()
        return laws
