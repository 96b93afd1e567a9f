"""Shared by students with several heads on the target's last hidden state: places, ranks, accuracies, accepted length.

Place i of a window is a state: it gave the token at i + 1, and head k (from 0) predicts the token at i + 2 + k, given
the tokens between if the heads read them.
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

DECAY = 0.8  # decay of the loss's weight from head to head, as in the paper


class HeadsStudent(Student):
    """Trained parts have ``accuracies``, as the drafter reads them."""

    @property
    def logit_sets(self) -> int:
        return self.settings["heads"]

    def states(self, part, lesson: Lesson) -> Tensor:
        """[S, T, H]: the states that the heads read."""
        return lesson.features

    @abstractmethod
    def logits(self, part, head: int, states: Tensor, lesson: Lesson) -> Tensor:
        """[S, T - 2 - head, V]: a head's logits at each state [S, T - 2 - head, H] whose token is in the window."""

    def head_loss(self, logits: Tensor, head: int, lesson: Lesson) -> Tensor:
        """The loss on the result of ``logits``, a mean over the counted places: the distance from the target's
        distributions."""
        teacher = lesson.logits[:, 1 + head : -1].flatten(0, 1)
        weights = lesson.counted[:, 2 + head :].flatten().float()
        return divergence_loss(logits.flatten(0, 1), teacher, weights)

    def loss(self, part, lesson: Lesson) -> Tensor:
        states = self.states(part, lesson)
        said = (self.logits(part, k, states[:, : -2 - k], lesson) for k in range(len(part)))
        told = sum(DECAY**k * self.head_loss(logits, k, lesson) for k, logits in enumerate(said))
        return told + self.states_loss(part, states, lesson)

    def states_loss(self, part, states: Tensor, lesson: Lesson) -> Tensor | float:
        """The loss on the result of ``states``, where the states themselves learn something; 0 where they do not."""
        return 0.0

    def ranks(self, part, lesson: Lesson) -> Tensor:
        """int64 [S, T, K]: the rank, from 0, that each head gives the text's token; RANKS where the token ranks lower
        or the window ends before it."""
        rows, length = lesson.tokens.shape
        found = torch.full((rows, length, len(part)), RANKS)
        states = self.states(part, lesson)
        for head in range(min(len(part), length - 2)):
            logits = self.logits(part, head, states[:, : -2 - head], lesson)
            wanted = logits.gather(-1, lesson.tokens[:, 2 + head :, None])
            found[:, : length - 2 - head, head] = (logits > wanted).sum(-1).clamp(max=RANKS).cpu()
        return found

    def accepted(self, part, lesson: Lesson) -> Tensor:
        """For the drafter's usual tree."""
        found = torch.zeros_like(lesson.tokens)
        kept = kept_lengths(self.ranks(part, lesson), shape_of(part.accuracies))
        found[:, 1:] = kept[:, :-1]  # the state before the root
        return found

    def measured(self, part, lessons: Iterable[Lesson]) -> dict:
        """The share of places in which each rank of each head is right; these shares are also put into the part."""
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
        found = table(shares)
        part.accuracies = tuple(map(tuple, found))
        return {FIELD: found}


def token_loss(logits: Tensor, head: int, lesson: Lesson) -> Tensor:
    """Cross-entropy of the text's tokens, a mean over the counted ones. logits: [S, T - 2 - head, V]."""
    wanted = lesson.tokens[:, 2 + head :].flatten()
    weights = lesson.counted[:, 2 + head :].flatten().float()
    losses = F.cross_entropy(logits.flatten(0, 1).float(), wanted, reduction="none")
    return (losses * weights).sum() / weights.sum().clamp(min=1)


def shape_of(accuracies: Accuracies, budget: int = HeadsDrafter.usual_size) -> Shape:
    """The tree that the drafter builds from these accuracies."""
    return cheapest_shape(tuple(tuple(map(cost, row)) for row in accuracies), budget)


def kept_lengths(ranks: Tensor, shape: Shape) -> Tensor:
    """ranks: [S, T, K] of the right tokens -> int64 [S, T]: to what depth the tree holds them."""
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
