"""Accept by clusters of interchangeable tokens: lossy.

So et al., Grouped Speculative Decoding for Autoregressive Image Generation (2025). In an image, many tokens would do at
one position. So a drafted token is often refused although the target would have written a similar token. Here the
cluster around the drafted token is judged instead. With C(x) the tokens that rank near x in the target's order, a draft
x from q is kept with probability

    min(1, p(C(x)) / q(C(x))).

The clusters are dynamic: a cluster holds the ``group`` tokens of the nearest ranks by p at this position, without those
whose p differs by more than ``spread``. (The paper's code also leaves out tokens whose embeddings lie far apart.)
"""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from engine.core.exhibits import Later, Table, Token
from engine.core.options import number, whole
from engine.core.rule import Case, Verdict
from engine.core.sampling import display_distribution
from engine.core.tree import DraftTree, Draw
from engine.rules.rejection import Rejection, SiblingTrial
from engine.rules.sentences import REJECTION

Prices = tuple[int, float, float, float]
"""Four numbers for a drafted token: the size of its cluster; the probability that a token drawn from q is kept by the
exact rule; the probability that it is kept by this rule; and the total variation between p and the law of the token
that this rule writes."""
Priced = tuple[Draw, Callable[[], Prices]]


class Grouped(Rejection):
    """After a refusal, a token is drawn from the residual of p and q as in rejection sampling.

    The judgements' rule is ``group``; their p and q are those of the cluster. At temperature 0, where p and q put
    everything on one token, a draft is kept if the target's favourite is in its cluster; the ranks are then those of
    the plain softmax.

    For every place of the walk, the exhibit shows how much more often a draft is kept than by the exact rule, and the
    price: the total variation between p and the law that the rule writes there.
    """

    key = "gsd"
    title = "Grouped (lossy)"
    summary = (
        "keeps a draw as often as the cluster of tokens around it deserves: lossy, some tokens come "
        "more often than the target would write them"
    )
    exact_kinds = frozenset()
    options = (
        whole("group", 8, 1, 64, "Cluster").meaning("Tokens of a cluster, by their rank in p."),
        number("spread", 0.15, 0.0, 1.0, "Spread of p").meaning(
            "Most that the p of a token of the cluster may differ from the draft's."
        ),
    )
    trial = {"group": 2}
    sentences = {
        "group.kept": "The cluster around {token} has q = {q} and p = {p}, so {token} was to be kept with probability {accept}; "
        "the coin fell at {coin}: accepted. (A lossy rule: another token of the cluster might have been due.)",
        "group.sure": "The cluster around {token} has q = {q} and p no less, {p}, so {token} was sure to be kept: "
        "accepted. (A lossy rule: another token of the cluster might have been due.)",
        "group.refused": "The cluster around {token} has q = {q}, p only {p}, so it was to be kept with probability {accept}; "
        "the coin fell at {coin}: rejected.",
        "group.recovered": "After {token} had been refused here, a new token was drawn from what is left of p after "
        "taking q away: {final}.",
        "recovered": REJECTION["recovered"],
        "bonus": REJECTION["bonus"],
    }

    def judge(self, case: Case) -> Verdict:
        self._case, self._priced = case, []
        verdict = super().judge(case)
        if self._priced:
            make = partial(self._table, case.tree, verdict.accepted, self._priced)
            verdict.exhibits.append(Later(make))
        return verdict

    def trial_of(self, p: Tensor, tree: DraftTree, draws: Sequence[Draw]) -> SiblingTrial:
        place = tree.parents[draws[0].node]
        shown = display_distribution(self._case.logits[place + 1], self._case.sampling)
        trial = GroupedTrial(p, shown.double().cpu(), tree.laws, **self.settings)
        self._priced.append((draws[0], trial.price(tree.tokens[draws[0].node], draws[0])))
        return trial

    def expected_acceptance(self, p, scheme):
        return None

    def _table(self, tree: DraftTree, accepted: Sequence[int], priced: list[Priced]) -> Table:
        rows = [
            [
                Token(tree.tokens[draw.node]),
                *price(),
                "kept" if draw.node in accepted else "refused",
            ]
            for draw, price in priced
        ]
        gain = sum(row[3] - row[2] for row in rows)
        price = sum(row[4] for row in rows) / len(rows)
        return Table(
            f"Clusters of at most {self.settings['group']}: gain and price",
            ["Draft", "Cluster", "Kept by p/q", "Kept by clusters", "Price", "Outcome"],
            rows,
            note=f"Lossy: {gain:.2f} more tokens expected to be kept than by the lossless rule, at a price of {price:.3f} of "
            "the probability per place that goes to other tokens than the target’s.",
        )


class GroupedTrial(SiblingTrial):
    """The trial of one node's draws by clusters. shown: [V], the p by which tokens are ranked. group, spread: see
    ``Grouped``."""

    def __init__(
        self, p: Tensor, shown: Tensor, laws: Sequence[Tensor], group: int, spread: float
    ) -> None:
        super().__init__(p, laws)
        self._clusters = Clusters(shown, group, spread)

    def weigh(self, token: int, drawn: Draw) -> tuple[str, float, float]:
        members = self._clusters.of(token)
        q = 0.0 if drawn.kind == "one_hot" else float(self.q(drawn.law)[members].sum())
        return "group", min(1.0, float(self.p[members].sum())), min(1.0, q) if q > 0 else 1.0

    def refuse(self, token: int, rule: str, drawn: Draw) -> None:
        """Replace p by the residual of the exact rule, as in the paper."""
        super().refuse(token, drawn.kind, drawn)

    def price(self, token: int, drawn: Draw) -> Callable[[], Prices]:
        """A function that computes the ``Prices`` of this drafted token. It is called on demand, because it needs the
        cluster of every token of the vocabulary. For a one-hot draw, q is 1 for the drawn token."""
        q = None if drawn.kind == "one_hot" else self.q(drawn.law)
        return partial(self._clusters.price, token, self.p, q)


class Clusters:
    """The tokens that may stand for each other at one position."""

    def __init__(self, shown: Tensor, group: int, spread: float) -> None:
        """shown: [V], the target's probabilities. group, spread: see ``Grouped``."""
        self._shown, self._spread = shown, spread
        self._order = shown.argsort(descending=True, stable=True)
        self._around = torch.arange(-((group - 1) // 2), group // 2 + 1)

    def of(self, token: int) -> Tensor:
        """[C], the tokens in this token's cluster, including the token itself."""
        rank = (self._order == token).nonzero()[0]
        near, members = self._at(rank)
        return near[0][members[0]]

    def _at(self, ranks: Tensor) -> tuple[Tensor, Tensor]:
        """Two tensors [R, group]: the tokens near each of these ranks [R], and whether each is in the cluster of that
        rank's token."""
        places, last = ranks[:, None] + self._around, len(self._order) - 1
        near = self._order[places.clamp(0, last)]
        alike = (self._shown[near] - self._shown[self._order[ranks]][:, None]).abs() <= self._spread
        return near, alike & (places >= 0) & (places <= last)

    def accept(self, p: Tensor, q: Tensor) -> Tensor:
        """[V], the probability that each token is kept if it is drawn from q."""
        near, members = self._at(torch.arange(len(self._order)))
        share_p, share_q = ((law[near] * members).sum(-1) for law in (p, q))
        kept = torch.empty_like(p)
        kept[self._order] = torch.where(
            share_q > 0, share_p / share_q.clamp(min=1e-300), 0.0
        ).clamp(max=1.0)
        return kept

    def price(self, token: int, p: Tensor, q: Tensor | None) -> Prices:
        """The ``Prices`` of the drafted ``token``. p: [V], the target's law. q: [V], the law from which the token was
        drawn; None for a one-hot draw."""
        if q is None:
            q = torch.zeros_like(p)
            q[token] = 1
        kept = q * self.accept(p, q)
        left = (p - q).clamp(min=0)
        mass = left.sum()
        left = left / mass if mass > 0 else p
        written = kept + (1 - kept.sum()) * left
        exact = float(torch.minimum(p, q).sum())
        price = float((written - p).clamp(min=0).sum())
        return len(self.of(token)), exact, float(kept.sum()), price
