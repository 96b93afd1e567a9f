"""The base class of students that train several heads on the target's last hidden state.

From the hidden state at position i of a window, the target's own head predicts the token at i + 1, and the trained
head number k (from 0) predicts the token at i + 2 + k. Some kinds of heads also see the tokens between.

Letters in shapes: S windows, T tokens of each, H hidden size, V vocabulary.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.core.tree import ROOT
from engine.methods.shared.fixed_shape import Shape, cheapest_shape
from engine.methods.shared.head_ranks import FIELD, RANKS, Accuracies, cost, table
from engine.methods.shared.heads import HeadsDrafter
from engine.training.distill import divergence_loss
from engine.training.student import Lesson, Student

DECAY = 0.8  # the weight of a head's loss relative to the head before it, as in the paper


class HeadsStudent(Student):
    """The base class of students that train heads. The length of a part is its number of heads, and ``accuracies``
    says how often each head is right (``HeadsPart``)."""

    @property
    def logit_sets(self) -> int:
        return self.settings["heads"]

    def states(self, part, lesson: Lesson) -> Tensor:
        """The hidden states from which the heads predict, [S, T, H]; by default the target's last hidden states."""
        return lesson.features

    @abstractmethod
    def logits(self, part, head: int, states: Tensor, lesson: Lesson) -> Tensor:
        """The logits of head number ``head``, [S, T - 2 - head, V]. states: [S, T - 2 - head, H], only those from
        which the head predicts a token inside the window."""

    def head_loss(self, logits: Tensor, head: int, lesson: Lesson) -> Tensor:
        """The loss of head number ``head``, a mean over the tokens that are counted; by default the divergence from
        the target's laws. logits: the result of ``self.logits``."""
        teacher = lesson.logits[:, 1 + head : -1].flatten(0, 1)
        weights = lesson.counted[:, 2 + head :].flatten().float()
        return divergence_loss(logits.flatten(0, 1), teacher, weights)

    def loss(self, part, lesson: Lesson) -> Tensor:
        states = self.states(part, lesson)
        said = (self.logits(part, k, states[:, : -2 - k], lesson) for k in range(len(part)))
        total = sum(DECAY**k * self.head_loss(logits, k, lesson) for k, logits in enumerate(said))
        return total + self.states_loss(part, states, lesson)

    def states_loss(self, part, states: Tensor, lesson: Lesson) -> Tensor | float:
        """An additional loss on the result of ``self.states``, for parts that have trained weights in the states
        themselves; by default 0."""
        return 0.0

    def ranks(self, part, lesson: Lesson) -> Tensor:
        """For each of K heads, the rank (from 0) that it gives to the text's token at the position that it predicts,
        int64 [S, T, K]. The value is RANKS if the rank is RANKS or more, or if the position lies beyond the window."""
        rows, length = lesson.tokens.shape
        ranks = torch.full((rows, length, len(part)), RANKS)
        states = self.states(part, lesson)
        for head in range(min(len(part), length - 2)):
            logits = self.logits(part, head, states[:, : -2 - head], lesson)
            right = logits.gather(-1, lesson.tokens[:, 2 + head :, None])
            ranks[:, : length - 2 - head, head] = (logits > right).sum(-1).clamp(max=RANKS).cpu()
        return ranks

    def accepted(self, part, lesson: Lesson) -> Tensor:
        """See ``Student.accepted``. Measured with a tree of the drafter's ``usual_size``."""
        lengths = torch.zeros_like(lesson.tokens)
        kept = kept_lengths(self.ranks(part, lesson), shape_of(part.accuracies))
        lengths[:, 1:] = kept[:, :-1]  # the state before the root
        return lengths

    def measured(self, part, lessons: Iterable[Lesson]) -> dict:
        """The entry ``FIELD`` of config.json: for each head and each rank, at which share of positions the head's
        candidate with this rank is the text's token. The shares are also stored in ``part.accuracies``."""
        hits = torch.zeros(len(part), RANKS + 1)
        places = torch.zeros(len(part))
        for lesson in lessons:
            ranks = self.ranks(part, lesson)
            for head in range(len(part)):
                counted = lesson.counted[:, 2 + head :].cpu()
                seen = ranks[:, : counted.shape[1], head][counted]
                hits[head] += torch.bincount(seen, minlength=RANKS + 1)
                places[head] += len(seen)
        shares = (hits[:, :RANKS] / places[:, None].clamp(min=1)).tolist()
        shares_table = table(shares)
        part.accuracies = tuple(map(tuple, shares_table))
        return {FIELD: shares_table}


def token_loss(logits: Tensor, head: int, lesson: Lesson) -> Tensor:
    """The mean cross-entropy of head number ``head`` on the text's counted tokens. logits: [S, T - 2 - head, V]."""
    labels = lesson.tokens[:, 2 + head :].flatten()
    weights = lesson.counted[:, 2 + head :].flatten().float()
    losses = F.cross_entropy(logits.flatten(0, 1).float(), labels, reduction="none")
    return (losses * weights).sum() / weights.sum().clamp(min=1)


def shape_of(accuracies: Accuracies, budget: int = HeadsDrafter.usual_size) -> Shape:
    """The shape of the tree of ``budget`` nodes that the drafter builds with heads of these accuracies."""
    return cheapest_shape(tuple(tuple(map(cost, row)) for row in accuracies), budget)


def kept_lengths(ranks: Tensor, shape: Shape) -> Tensor:
    """For each hidden state, how many of the next tokens of the text are found along one path of a tree of this shape,
    int64 [S, T]. ranks: the rank that each of the K heads gives to the text's token, [S, T, K]."""
    paths: list[tuple[int, ...]] = []
    for parent, rank in shape:
        paths.append((*paths[parent], rank) if parent != ROOT else (rank,))
    held = set(paths)

    def depth(right: list[int]) -> int:
        kept = 0
        while kept < len(right) and tuple(right[: kept + 1]) in held:
            kept += 1
        return kept

    return torch.tensor([[depth(right) for right in row] for row in ranks.tolist()])
