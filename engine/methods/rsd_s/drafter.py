"""Whole sequences, drawn without replacement by stochastic beam search.

Recursive Speculative Decoding with stochastic beam search (RSD-S), Jeon et al. 2024; the search is that of Kool et al.,
Stochastic Beams and Where to Find Them (2019).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.core.exhibits import Table, Token
from engine.core.options import number, whole
from engine.core.tree import DraftTree
from engine.methods.shared.levels import SOURCE, LevelDrafter


class RSDBeam(LevelDrafter):
    """Each level keeps W sequences: those with the highest Gumbel-perturbed log-probability, where the maximum over a
    node's children is the node's own value.

    The search works with discrete draws. A perturbed log-probability, negated, is the logarithm of the time at which an
    exponential clock rings whose rate is the sequence's q, and a node rings with the earliest of its children. So a
    level's beam is the order in which its sequences ring. Exponential clocks are memoryless. So, given the beam of the
    level above, in order, the next sequence to ring is one of two kinds. It is a remaining child of a node that has
    rung, at the rate of the q that is left under this node; or it is the first child of the next node of the beam, at
    the rate of all q under nodes that have not rung. The child is then drawn from the q that is left under its node.
    ``Race`` makes these draws. Every tree has the same probability as under the recursion with truncated Gumbels, and
    no noise for a whole vocabulary is needed.

    The drafter is exact with rejection sampling. The number of a node's children depends on drawn values, but whether
    the j-th child stays in the beam depends only on the time at which it rings, which is independent of its token.
    Given its earlier siblings and that it exists, the child is a draw from q without the tokens of these siblings.

    In greedy decoding this is beam search, judged one-hot.
    """

    key = "rsd_s"
    title = "Tree, RSD-S"
    summary = "A draft model draws different sequences by stochastic beam search."
    draw_kinds = ("without_replacement",)
    options = (
        whole("width", 3, 1, 32, "Beam width").meaning("Sequences kept at every level."),
        whole("length", 4, 1, 16).meaning("Levels of the tree."),
        number("diversity", 0.0, 0.0, 10.0, "diversity", advanced=True, only="greedy").meaning(
            "What a token costs, in log q, for each sequence of its level that has just taken it (0: nothing)."
        ),
    )
    trial = {"width": 2, "length": 2}

    @property
    def levels(self) -> int:
        return self.settings["length"]

    def grow(self, tree, parents, q, level):
        if level == 0:
            self._beams = [[Beam(parents[0], 1.0)]]
        search = self._best if self.sampling.greedy else self._race
        beam = search(tree, self._beams[-1], q)
        self._beams.append(beam)
        return [place.node for place in beam]

    def _race(self, tree: DraftTree, beam: Sequence["Beam"], q: Tensor) -> list["Beam"]:
        race, laws, kept = Race(beam, q), q.unbind(), []
        while len(kept) < self.settings["width"]:
            weights = race.weights()
            if not float(weights.sum()) > 0:
                break
            place = self.chance.draw(weights)
            left = race.left(place)
            token = self.chance.draw(left)
            parent, law = beam[place], laws[place]
            node = tree.draw(parent.node, token, "without_replacement", law, SOURCE)
            kept.append(Beam(node, parent.share * float(law[token])))
            left[token] = 0
        return kept

    def _best(self, tree: DraftTree, beam: Sequence["Beam"], q: Tensor) -> list["Beam"]:
        shares = torch.tensor([place.share for place in beam], dtype=torch.float64)
        scores = shares[:, None] * q.double()
        laws, kept = q.unbind(), []
        for place, token in self._chosen(scores):
            node = tree.draw(beam[place].node, token, "one_hot", laws[place], SOURCE)
            kept.append(Beam(node, float(scores[place, token])))
        return kept

    def _chosen(self, scores: Tensor) -> list[tuple[int, int]]:
        """Return the (place, token) pairs that the beam keeps, the best first. scores: [W, V]. With a diversity, each
        sequence is a group of diverse beam search (Vijayakumar et al. 2016)."""
        count, cost = min(self.settings["width"], scores.numel()), self.settings["diversity"]
        if not cost:
            best = scores.flatten().topk(count)
            pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
            return [divmod(index, scores.shape[-1]) for index, share in pairs if share > 0]
        left, chosen = scores.log(), []
        for _ in range(count):
            place, token = divmod(int(left.argmax()), scores.shape[-1])
            if left[place, token] == -torch.inf:
                break
            chosen.append((place, token))
            left[place, token] = -torch.inf
            left[:, token] -= cost
        return chosen

    def show(self, tree):
        deepest = len(self._beams) - 1
        rows = []
        for rank, place in enumerate(self._beams[-1], start=1):
            tokens = [Token(tree.tokens[node]) for node in tree.path(place.node)]
            rows.append([rank, *tokens, place.share])
        columns = ("rank", *(f"token {depth}" for depth in range(1, deepest + 1)), "q")
        note = (
            "By q."
            if self.sampling.greedy
            else "By the perturbed q: each rank is a draw among the sequences that the ranks before it left."
        )
        tree.exhibits.append(Table("Sequences kept at the last level", columns, rows, note=note))


@dataclass(frozen=True)
class Beam:
    """A sequence that the beam keeps. node: its last node. share: the draft's probability of the whole sequence."""

    node: int
    share: float


class Race:
    """The clocks of one level (see ``RSDBeam``). The nodes of the beam above ring in order."""

    def __init__(self, beam: Sequence[Beam], q: Tensor) -> None:
        """beam: the sequences of the level above, in order. q: [len(beam), V], the laws after them."""
        self._shares = [place.share for place in beam]
        self._left = q.double().clone()
        self._rung = 0

    def weights(self) -> Tensor:
        """Return the mass left under each of the R nodes that have rung, then the mass of all nodes that have not,
        float64 [R + 1]. The last entry is missing once all have rung."""
        rung = [
            share * float(left.sum())
            for share, left in zip(self._shares[: self._rung], self._left, strict=False)
        ]
        if self._rung < len(self._shares):
            rung.append(max(1.0 - sum(self._shares[: self._rung]), self._shares[self._rung]))
        return torch.tensor(rung, dtype=torch.float64)

    def left(self, place: int) -> Tensor:
        """Return the mass [V] left under the node that rings now; the caller sets the entry of the drawn token to 0."""
        self._rung = max(self._rung, place + 1)
        return self._left[place]
