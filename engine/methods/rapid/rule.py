"""Speculative sampling with a p that was moved towards the draft model's q: lossy.

The inference-time transfer of RAPID (Chen et al., Long-Context Inference with Retrieval-Augmented Speculative Decoding,
ICML 2025): a draft model that was given only the retrieved pieces may predict better than the target, which was given
everything. So the draft model teaches the target, anew for every token. One step down the gradient of the distillation
loss moves the target's logits z to z + transfer * (q - p), for the tokens whose q is at least a tenth of the highest q.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.core.chance import JudgeChance
from engine.core.exhibits import Table, Token
from engine.core.options import number
from engine.core.rule import Case, Judgement, Verdict, Verifier
from engine.core.sampling import display_distribution
from engine.core.tree import ROOT, DraftTree, Draw
from engine.rules.matching import verdict_of
from engine.rules.rejection import normalised

LEAST = 0.1
"""If a token's q is below this share of the highest q, its logit is not moved, as in the authors' code."""


class Transfer(Verifier):
    """A draw x from q is kept with probability min(1, p'(x) / q(x)), where p' is the moved p.

    After a refusal the next token is drawn from max(p - q, p - p'), where this is above 0, as in the authors' code.
    After a path that was kept whole, it is drawn from p itself. A one-hot draw is kept with probability p'(x). All
    siblings but the first are judged one-hot by what is left of p after the refusals.

    At temperature 0, where p is the plain softmax, the token with the highest p' is kept; after a refusal the target's
    own likeliest token (by p) is written. With a transfer of 0 this is rejection sampling.
    """

    key = "rapid"
    title = "Rejection sampling with transfer (lossy)"
    summary = (
        "moves p towards q before the coin is tossed; lossy: the text differs from the target's own"
    )
    options = (
        number("transfer", 10.0, 0.0, 100.0, "transfer").meaning(
            "How far p is moved towards q (0: not at all)."
        ),
    )
    exact_kinds = frozenset()
    sentences = {
        "transfer.kept": "Moved towards the draft's q, the target's probability of {token} is {p}; q is {q}. "
        "The coin fell below {accept}: accepted. (A lossy rule: p itself may be lower.)",
        "transfer.refused": "Even moved towards the draft's q, the target's probability of {token} is only {p}, "
        "and q is {q}: the coin was not below {accept}, so the token was rejected.",
        "favourite.kept": "Moved towards the draft's q, the target likes {token} best, with {p}: accepted. "
        "(A lossy rule: by p itself it may like another token better.)",
        "favourite.refused": "Even moved towards the draft's q, the target likes another token better than {token}, "
        "which has {p}: rejected.",
        "recovered": "The target wrote a token of its own: {final}.",
        "bonus": "The whole path was kept, and the target wrote the next token: {final}.",
    }

    def judge(self, case: Case) -> Verdict:
        tree, walk = case.tree, [ROOT]
        greedy, transfer = case.sampling.greedy, self.settings["transfer"]
        shown = (display_distribution(case.logits, case.sampling) if greedy else case.p).cpu()
        judgements: list[Judgement] = []
        residuals: dict[int, Tensor] = {}
        rows: list[list] = []
        while True:
            place, kept = walk[-1], None
            draws = tree.draws.get(place, ())
            trial = Trial(shown[place + 1], tree, transfer, greedy)
            for drawn in draws:
                test = trial.judge(drawn, case.chance)
                judgements.append(test)
                rows.append(self._row(tree, drawn, float(trial.p[tree.tokens[drawn.node]]), test))
                if test.accept > (test.coin or 0.0):
                    kept = drawn.node
                    break
            if trial.refused and not greedy:
                residuals[place] = trial.left
            if kept is None:
                break
            walk.append(kept)
        law = case.p[place + 1] if greedy else trial.left
        token = case.chance.draw(law, case.position + len(walk) - 1)
        shown = {"residuals": residuals, "exhibits": [_table(rows, transfer)] if rows else []}
        final = "recovered" if draws else "bonus"
        return verdict_of(tree, walk, judgements, token, final, **shown)

    @staticmethod
    def _row(tree: DraftTree, drawn: Draw, p: float, told: Judgement) -> list:
        outcome = "kept" if told.accept > (told.coin or 0.0) else "refused"
        return [Token(tree.tokens[drawn.node]), p, told.p, tree.q[drawn.node], outcome]


class Trial:
    """The trial of all draws at one node. left: [V], the law from which the target's own token would be drawn if no
    further draw were judged."""

    def __init__(self, p: Tensor, tree: DraftTree, transfer: float, greedy: bool) -> None:
        """p: [V], the target's law after this node; at temperature 0 the plain softmax."""
        self.p = self.left = normalised(p.double())
        self.refused = 0
        self._tree, self._transfer, self._greedy = tree, transfer, greedy
        self._moved: Tensor | None = None

    def judge(self, drawn: Draw, chance: JudgeChance) -> Judgement:
        token = self._tree.tokens[drawn.node]
        if self._greedy:
            moved = self._favourite(drawn)
            best = float(int(moved.argmax()) == token)
            self.refused += 1 - int(best)
            return Judgement(drawn.node, "favourite", float(moved[token]), None, best, None)
        teacher = None if self.refused else self._law(drawn)
        moved = self.left if teacher is None else moved_towards(self.p, teacher, self._transfer)
        q = torch.zeros_like(moved)
        q[token] = 1.0
        if teacher is not None and drawn.kind != "one_hot":
            q = teacher
        accept, coin = min(1.0, float(moved[token] / q[token])), chance.toss()
        if coin >= accept:
            self.refused += 1
            rest = torch.maximum(self.left - q, self.left - moved).clamp_(min=0)
            self.left = normalised(rest, otherwise=self.left)
        return Judgement(drawn.node, "transfer", float(moved[token]), float(q[token]), accept, coin)

    def _favourite(self, drawn: Draw) -> Tensor:
        """Return p', which is p moved towards the law of the first draw at this node, for decoding at temperature 0."""
        if self._moved is None:
            teacher = self._law(drawn)
            self._moved = (
                self.p if teacher is None else moved_towards(self.p, teacher, self._transfer)
            )
        return self._moved

    def _law(self, drawn: Draw) -> Tensor | None:
        """Return the law q [V] that the drafter gave with this draw, whether the token was drawn from it or not; None
        if the drafter gave no law."""
        if drawn.law is None:
            return None
        return normalised(self._tree.laws[drawn.law].double().cpu())


def moved_towards(p: Tensor, q: Tensor, transfer: float) -> Tensor:
    """Return p', the softmax of log p + transfer * (q - p). Tokens whose q is below ``LEAST`` times the highest q get
    no such addition. p, q: [V], each sums to 1."""
    step = torch.where(q >= LEAST * q.max(), q - p, 0.0)
    return (p.log() + transfer * step).softmax(-1)


def _table(rows: Sequence[list], transfer: float) -> Table:
    note = "Lossy: a token may stay that the target would not have written itself."
    columns = ["Token", "p", "p moved towards q", "q", "Outcome"]
    return Table(f"p before and after the transfer of {transfer:g}", columns, rows, note=note)
