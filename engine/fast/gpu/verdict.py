"""A pass of the target that judges its trees and moves the KV rows of accepted nodes, without waiting for the host."""

from array import array
from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor, nn

from engine.core.transfer import to_device
from engine.fast.gpu.inputs import DeviceRows, Size, StepInputs
from engine.fast.gpu.question import JudgingKey
from engine.fast.gpu.static_cache import StaticCache
from engine.fast.gpu.static_step import step
from engine.fast.kernels.flat_tree import FlatTree
from engine.fast.kernels.truncation import truncated
from engine.fast.kernels.verify_tree import verify_tree


class JudgedInputs(StepInputs):
    """The buffer of a judged pass, including the whole numbers and coins that the verdicts depend on.

    R is the number of rows of the pass, for the root and up to R - 1 nodes. draws, first, kinds, q_row, q: for each
    sequence, the arrays of a ``FlatTree``, with room for R - 1 nodes and R draws. noise: as in ``Question``. noise and
    q have a tensor for each sequence: [R, V], or [0, V] if the rule that judges the sequence needs no such numbers.
    laws: for each sequence, how its trees are judged.
    """

    def __init__(
        self, size: Size, device: torch.device, laws: Sequence[JudgingKey], vocabulary: int
    ) -> None:
        super().__init__(size, device, len(laws))
        self.draws, self.first, self.kinds, self.q_row, coins = self.more
        self.coins = coins.view(torch.float64)
        self.laws = tuple(laws)

        def held(rows: int) -> Tensor:
            return torch.ones(rows, vocabulary, device=device)

        self.noise = [held(0 if law.rule == "greedy" else size.rows) for law in laws]
        self.q = [held(size.rows if law.draws else 0) for law in laws]

    def _room(self, size: Size) -> tuple[int, ...]:
        rows = size.rows
        return *super()._room(size), rows, rows + 1, rows, rows, 2 * rows

    def _numbers(self, rows: DeviceRows) -> tuple[Sequence[int], ...]:
        question = rows.question
        draws, first, kinds, q_row = question.places.numbers
        padding = [len(draws)] * (self.size.rows + 1 - len(first))  # places without draws
        coins = array("i", array("d", question.coins).tobytes())
        return *super()._numbers(rows), draws, first + padding, kinds, q_row, coins

    def load(self, *given: DeviceRows) -> None:
        super().load(*given)
        for sequence, rows in enumerate(given):
            noise, q = rows.question.noise, rows.question.places.q
            if noise is not None:
                self.noise[sequence][: len(noise)].copy_(noise)
            if len(self.q[sequence]) and q:
                _fill(self.q[sequence], q)

    def fits(self, given: Sequence[DeviceRows]) -> bool:
        """Whether the buffer has room for the trees in ``given``. There may be too many draws, because independent
        draws may repeat a token without adding a row. And there may be a q without room, because a drafter may propose
        with a q although it declares only kinds of draw that need none."""
        return all(
            len(places.draws) <= self.size.rows
            and (law.rule != "rejection" or len(places.q) <= len(q))
            for places, law, q in zip(
                (rows.question.places for rows in given), self.laws, self.q, strict=True
            )
        )

    def tree(self, sequence: int) -> FlatTree:
        return FlatTree(
            self.tokens[sequence, 1:], self.own[sequence], self.draws[sequence],
            self.first[sequence], self.kinds[sequence], self.q_row[sequence],
            self.q[sequence], self.laws[sequence].strikes,
        )  # fmt: skip

    def judge(self, sequence: int, logits: Tensor) -> Tensor:
        """Judge the tree of the sequence with this index. logits: [R, V], of this sequence. Returns the numbers of the
        verdict, int32 [4 + 3 (R - 1)]."""
        law, rows = self.laws[sequence], logits
        if law.rule != "greedy":
            rows = truncated(logits, law.sampling)
        noise, coins = self.noise[sequence], self.coins[sequence]
        return verify_tree(law.rule, rows, self.tree(sequence), coins, noise).numbers


def _fill(held: Tensor, q: Sequence[Tensor]) -> None:
    """Copy the distributions ``q`` to the first rows of ``held``, each padded with zeros. The distributions must have
    the same width, at most that of ``held``; they may be on any device."""
    width = q[0].shape[-1]
    held[: len(q), :width].copy_(to_device(torch.stack(tuple(q)), held.device))
    held[: len(q), width:].zero_()


def judged(
    module: nn.Module, inputs: JudgedInputs, cache: StaticCache, features: tuple[int, ...]
) -> tuple[Tensor, Tensor | None, Tensor]:
    """Run one pass, judge its trees and move the KV rows of accepted nodes to the columns after the committed ones.

    Returns logits [B, R, V]; features [B, R, n*H] or None, with the accepted rows first, in the order of the cache; and
    the numbers of the verdicts, int32 [B, 4 + 3 (R - 1)].
    """
    logits, states = step(module, inputs, cache, features)
    numbers = torch.stack([inputs.judge(index, logits[index]) for index in range(len(logits))])
    place = torch.arange(inputs.size.rows, device=numbers.device, dtype=torch.int32)
    count = numbers[:, 0] + 1  # the root included
    path = torch.nn.functional.pad(numbers[:, 4 : 3 + inputs.size.rows] + 1, (1, 0))
    rows = torch.where(place < count[:, None], path, place)
    cache.move(inputs.prefix, rows, count)
    if states is not None:
        states = states.gather(1, rows.long()[..., None].expand_as(states))
    return logits, states, numbers


class Arrival:
    """The verdicts on B trees, N numbers for each, [B, N]. The first call of ``of`` copies all of them from the device
    to the host."""

    def __init__(self, numbers: Tensor) -> None:
        self._numbers = numbers

    @cached_property
    def _host(self) -> list[list[int]]:
        return self._numbers.tolist()

    def of(self, sequence: int) -> list[int]:
        return self._host[sequence]
