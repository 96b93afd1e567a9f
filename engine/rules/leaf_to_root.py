"""Judging whole branches from their leaves to the root: the code that block and traversal verification share.

Sun et al., Block Verification Accelerates Speculative Decoding (2025), on chains; Weng et al., Traversal Verification
for Speculative Tree Decoding (2025), on trees.
"""

from abc import ABC
from collections.abc import Sequence

import torch
from torch import Tensor

from engine.core.exhibits import Table, Token
from engine.core.rule import EVERY_KIND, Case, Judgement, Verdict, Verifier
from engine.core.tree import ROOT, DraftTree, Draw
from engine.rules.matching import verdict_of
from engine.rules.rejection import SiblingTrial, normalised
from engine.rules.sentences import REJECTION

SHOWN = 16
"""The most tests that the exhibit shows."""

_LEFT = "what the refused branches leave of p"


def weighed(odds: str) -> dict[str, str]:
    """The sentences (``engine.rules.sentences``) for a judged leaf. odds: the leaf's p and q, in words."""
    start = f"The branch up to {{token}} was weighed as a whole. Here {odds}; with the weight of the branch above that makes "
    fell = "a chance of {accept}; the coin fell at {coin}"
    return {
        "branch.kept": f"{start}{fell}: accepted.",
        "branch.sure": f"{start}it sure to be kept: accepted.",
        "branch.refused": f"{start}{fell}: rejected.",
    }


SENTENCES = {
    **weighed("q gave {token} {q} and p {p}"),
    "shortened.kept": "No longer branch through {token} was kept, so the one that ends with it was weighed: a chance of "
    "{accept}; the coin fell at {coin}: accepted.",
    "shortened.sure": "No longer branch through {token} was kept, but the one that ends with it was sure to be: accepted.",
    "shortened.refused": "No longer branch through {token} was kept, so the one that ends with it was weighed: a chance of "
    "{accept}; the coin fell at {coin}: rejected.",
    **{
        f"{rule}.replaced": f"In its place a new token was drawn from {_LEFT}: {{final}}."
        for rule in ("branch", "shortened")
    },
    "recovered": f"After {{token}} had been refused here, a new token was drawn from {_LEFT}: {{final}}.",
    "bonus": REJECTION["bonus"],
}


class LeafToRoot(Verifier, ABC):
    """A branch that ends with the node c has the weight

        w(root) = 1,   w(c) = min(1, w(parent) p(c) / q(c)),

    the probability with which it may be kept, whatever comes after it. The first leaf in the order drawn is kept with
    this probability, together with its whole branch. A refused leaf is removed: at its parent, p becomes (w p - q)+
    divided by its sum S, and w becomes S / (S + 1 - w); q loses the token if the token cannot be drawn again. A node
    that has lost all its children is a leaf. The root is always kept. The next token is drawn from p as it then is at
    the last kept node.

    The rule is exact where the tokens below a node say nothing about siblings that were drawn after it (``shapes``).

    The judgements' rule is ``branch`` for a leaf as drafted: its p and q are those of its token, and the weight of the
    parent enters ``accept`` only. It is ``shortened`` for a node that has lost its children: its chance is not a ratio
    of one p and one q, so these are None. Kept nodes above the kept leaf have the judgement that ``above`` returns.
    """

    exact_kinds = EVERY_KIND
    sentences = SENTENCES
    note = ""
    """The note of the exhibit."""

    def judge(self, case: Case) -> Verdict:
        self._case = case
        self.judgements: list[Judgement] = []
        self.passed: list[Judgement] = []
        self._residuals: dict[int, Tensor] = {}
        self._rows: list[Sequence] = []
        path = self._below(ROOT, self._trial(ROOT, 1.0)) or []
        place = path[-1] if path else ROOT
        law, final = self._residuals.get(place), "recovered"
        if law is None:
            law, final = case.p[place + 1], "bonus"
        token = case.chance.draw(law, case.position + len(path))
        walk = [ROOT, *path]
        judgements = [*self.judgements, *self.passed]
        verdict = verdict_of(case.tree, walk, judgements, token, final, residuals=self._residuals)
        if self._rows:
            columns = ("token", "depth", "weight", "chance", "coin", "")
            rows = self._rows[:SHOWN]
            verdict.exhibits.append(
                Table("From the leaves to the root", columns, rows, note=self.note)
            )
        return verdict

    def draws_at(self, place: int, trial: "BranchTrial") -> Sequence[Draw]:
        """The draws under a place that are judged, in the order of judging."""
        return self._case.tree.draws.get(place, ())

    def above(self, node: int, weight: float, trial: "BranchTrial") -> Judgement:
        """The judgement of a kept node above the kept leaf. trial: the trial of its children, one of which is kept."""
        raise NotImplementedError

    def show(self, node: int, weight: float, chance: float, coin: float | None, words: str) -> None:
        """Add a row to the exhibit."""
        tree = self._case.tree
        self._rows.append(
            [Token(tree.tokens[node]), tree.depths[node], weight, chance, coin, words]
        )

    def _trial(self, place: int, weight: float) -> "BranchTrial":
        return BranchTrial(self._case.p[place + 1], self._case.tree, weight)

    def _below(self, place: int, trial: "BranchTrial") -> list[int] | None:
        """The nodes of the kept branch below a place; None if all branches there were refused."""
        for drawn in self.draws_at(place, trial):
            p, q = trial.attempt(drawn)
            path = self._branch(drawn.node, min(1.0, trial.weight * p / q), p, q)
            if path is not None:
                return path
            trial.refuse_attempt()
            self._residuals[place] = trial.p
        return None

    def _branch(self, node: int, weight: float, p: float, q: float) -> list[int] | None:
        """The kept branch from this node on; None if the node is refused. Nodes below a node of weight 0 are not
        visited."""
        if weight == 0 or not self._case.tree.draws.get(node):
            return [node] if self._kept(node, "branch", weight, weight, p, q) else None
        trial = self._trial(node, weight)
        path = self._below(node, trial)
        if path is not None:
            self.judgements.append(self.above(node, weight, trial))
            return [node, *path]
        return [node] if self._kept(node, "shortened", weight, trial.weight) else None

    def _kept(
        self,
        node: int,
        rule: str,
        weight: float,
        chance: float,
        p: float | None = None,
        q: float | None = None,
    ) -> bool:
        """Toss the coin of the branch that ends with this node. Returns whether the branch is kept."""
        coin = self._case.chance.toss()
        self.judgements.append(Judgement(node, rule, p, q, chance, coin))
        kept = coin < chance
        self.show(node, weight, chance, coin, "kept" if kept else "refused")
        return kept


class BranchTrial(SiblingTrial):
    """The trial of the branches below one place. weight: the weight of the branch that ends there, after the refusals
    so far."""

    def __init__(self, p: Tensor, tree: DraftTree, weight: float) -> None:
        super().__init__(p, tree.laws)
        self.weight = weight
        self._tokens = tree.tokens

    def attempt(self, drawn: Draw) -> tuple[float, float]:
        """Returns p and q of this draw, and remembers the draw for ``refuse_attempt``."""
        token = self._tokens[drawn.node]
        rule, p, q = self.weigh(token, drawn)
        self._tried = token, rule, drawn
        return p, q

    def refuse_attempt(self) -> None:
        """Refuse the draw of the last call of ``attempt``."""
        self.refuse(*self._tried)

    def refuse(self, token: int, rule: str, drawn: Draw) -> None:
        """Remove the refused branch from p and from the weight."""
        self.refused += 1
        law = self.q(drawn.law) if rule != "one_hot" else torch.zeros_like(self.p)
        if rule == "one_hot":
            law[token] = 1
        left = (self.weight * self.p - law).clamp_(min=0)
        mass = float(left.sum())
        self.weight = mass / (mass + 1 - self.weight) if self.weight < 1 else 1.0
        self.p = normalised(left, otherwise=self.p)
        self.leave_out(token, rule, drawn)

    def replace_law(self, law: int, q: Tensor) -> None:
        """Judge the draws from ``law`` as if they came from ``q``, [V] float64."""
        self._left[law] = q
