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
    """Each level keeps the W sequences with the highest Gumbel-perturbed log-probabilities. The perturbed values of a
    node's children are conditioned so that their maximum is the node's own perturbed value.

    The search here makes discrete draws with the same law, instead of drawing Gumbel noise. Think of an exponential
    clock for each sequence, whose rate is the draft model's probability q of the sequence. The logarithm of the time at
    which the clock rings has the law of the perturbed log-probability with its sign changed. So the sequences with the
    highest perturbed values are those whose clocks ring first. A node rings when the earliest of its children rings. So
    the beam of a level is the first W sequences that ring, in this order.

    Exponential clocks are memoryless. Therefore, given the ordered beam of the level above, the next sequence that
    rings is of one of two kinds. The first kind: the sequence is another child of a node that has already rung. This
    event has as its rate the q of all children of that node that have not rung. The second kind: the sequence is the
    first child to ring of a node that has not rung; that node is the next one in the beam. This event has as its rate
    the q of all nodes of the level above that have not rung, whether the beam holds them or not. In both cases the
    child is then drawn from the q of those children of its parent that have not rung. ``Race`` makes these draws. Every
    tree has the same probability as in the paper's recursion with truncated Gumbels, but no noise has to be drawn for a
    whole vocabulary.

    The drafter is exact with rejection sampling, although the number of a node's children depends on drawn values. The
    reason is that whether the j-th child stays in the beam depends only on the time at which the child rings, and this
    time is independent of the child's token. Given the earlier siblings, and given that the child exists, its token is
    a draw from q without the tokens of these siblings.

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
        """Return the pairs (index of the parent in the beam, token) that the next beam keeps, the best pair first.
        scores: [W, V]. If the option ``diversity`` is above 0, each sequence is a group of its own in diverse beam
        search (Vijayakumar et al. 2016)."""
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
    """A sequence that the beam keeps. node: the last node of the sequence. share: the draft model's probability of the
    whole sequence."""

    node: int
    share: float


class Race:
    """The exponential clocks of one level, as ``RSDBeam`` explains them. The nodes in the beam of the level above ring
    in the order of that beam."""

    def __init__(self, beam: Sequence[Beam], q: Tensor) -> None:
        """beam: the sequences of the level above, in the order in which they rang. q: [len(beam), V], the draft model's
        law after each of these sequences."""
        self._shares = [place.share for place in beam]
        self._left = q.double().clone()
        self._rung = 0

    def weights(self) -> Tensor:
        """Return float64 [R + 1]. The first R entries belong to the R nodes of the beam that have rung: the probability
        of each node's children that have not rung. The last entry is the probability of all nodes of the level above
        that have not rung; it is missing if every node of the beam has rung."""
        rung = [
            share * float(left.sum())
            for share, left in zip(self._shares[: self._rung], self._left, strict=False)
        ]
        if self._rung < len(self._shares):
            rung.append(max(1.0 - sum(self._shares[: self._rung]), self._shares[self._rung]))
        return torch.tensor(rung, dtype=torch.float64)

    def left(self, place: int) -> Tensor:
        """Return the draft model's law q [V] after the node with the index ``place`` in the beam, with 0 for the tokens
        already drawn there, and record that this node has rung. The caller must set the entry of the token that it
        draws to 0."""
        self._rung = max(self._rung, place + 1)
        return self._left[place]
