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

    vocabulary: the target's. letters: [M]. laws: [M, A]; row i is the law from which letter i was drawn, given the
    letters before it.
    """

    vocabulary: Vocabulary
    letters: list[int]
    laws: Tensor


@dataclass(frozen=True)
class JudgedLetter:
    """One judged letter. q, p: its probabilities by draft and target, given the letters before it. accept: the chance
    that it is kept. ends: the chance that a token of the target ends with it, if it is kept."""

    letter: int
    q: float
    p: float
    accept: float
    ends: float


class JudgedString:
    """The possible outcomes for a drawn string of letters.

    A letter x is kept with the chance min(1, p(x) / q(x)), where p is the target's law of the next letter, by the
    covers that lead through the tree; a refused letter is replaced by a draw from the residual. If a token of the
    target may have ended at a place without a node, it is decided at once whether it has; if so, the string is kept
    only up to there. In the end the target's tokens are drawn, given that they spell the letters that were kept or
    replaced, and that the last token reaches or passes the end of these letters. So a step writes tokens by the
    target's own law, whichever nodes the tree has, provided that a node depends only on the letters that lead to it.

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
        """Judge the next letter. alive: the chance that the string is kept up to this letter. Returns the chance that
        the string is kept up to and including it, and goes on."""
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
        """Whether the tree has a node where the cover ends; if it has, the next token begins there."""
        node = self._nodes.get((cover.place, cover.token))
        if node is None:
            return False
        self._covers.open(node, cover.weight, self._p[node + 1])
        return True

    def _spread(self, chance: float, share: Tensor) -> None:
        """Add to ``outcomes`` that the string ends here with this chance. The target's token is then drawn from the
        covers, each cover with its weight times the share of its next letter. share: [A]."""
        chance /= self._covers.mass
        for ways in self._covers.begun:
            self.outcomes[ways.place + 1, ways.tokens] += chance * share[ways.column] * ways.weights

    def laws(self) -> Tensor:
        """Return a tensor, float64 [N+1, V]: the chance that the step leads through the root or a node and then on to
        this token, drafted or new. A row, scaled to sum to 1, is the law of the next token there."""
        laws = self.outcomes.clone()
        for node in reversed(range(len(self._tree))):
            laws[self._tree.parents[node] + 1, self._tree.tokens[node]] += laws[node + 1].sum()
        return laws
