"""A pass of a model as a pure function of static buffers.

Only operations on the device depend on the numbers in the buffers, so the same launches serve every prefix length and
every tree of one size. Padding rows see the prefix and themselves, so that their numbers stay finite. Their keys and
values are written after those of the real rows, and the next pass overwrites them.

Letters in shapes: B sequences, R rows of each (padding included), H hidden size, n requested hidden states, V
vocabulary.
"""

from functools import cached_property

import torch
from torch import Tensor, nn

from engine.core.sampling import Sampling, distribution, pick
from engine.fast.gpu.inputs import StepInputs
from engine.fast.gpu.static_cache import StaticCache
from engine.fast.kernels.bits import WORD, AncestorBits
from engine.model.forward import forward


class StaticMask:
    """An attention mask for B sequences that is computed on the device. The attention layers use it in place of an
    ``engine.model.row_mask.RowMask``.

    Its columns are all columns of the KV buffers, in use or not.
    """

    def __init__(self, inputs: StepInputs, capacity: int) -> None:
        self._inputs = inputs
        self._capacity = capacity
        self._windowed: dict[int | None, Tensor] = {}

    @cached_property
    def row_positions(self) -> Tensor:
        """The rows' positions in the text, [B, R]."""
        return (self._inputs.prefix[:, None] + self._inputs.own).long()

    @cached_property
    def columns(self) -> Tensor:
        """The columns that the rows' keys and values are written to, [B, R]."""
        rows = torch.arange(self._inputs.size.rows, device=self._inputs.buffer.device)
        return (self._inputs.prefix + self._inputs.behind)[:, None] + rows

    @cached_property
    def bits(self) -> AncestorBits:
        return self._inputs.mask(self._capacity)

    def within(self, window: int | None) -> Tensor:
        """The dense mask for a sliding window, bool [B, 1, R, capacity]. It is computed once per window and then
        reused."""
        if window not in self._windowed:
            self._windowed[window] = self._visible(window)
        return self._windowed[window]

    def _visible(self, window: int | None) -> Tensor:
        inputs = self._inputs
        columns = torch.arange(self._capacity, device=inputs.buffer.device)
        scratch = columns - inputs.prefix[:, None]
        place = scratch.clamp(0, inputs.size.scratch - 1)
        words = (place // WORD)[:, None].expand(-1, inputs.size.rows, -1)
        bit = inputs.bits.gather(2, words) >> (place % WORD)[:, None] & 1
        tree = bit.bool() & (scratch < inputs.size.scratch)[:, None]
        visible = (scratch < 0)[:, None] | tree
        if window is not None:
            depth = torch.where(scratch < 0, scratch, inputs.depths.gather(1, place))
            visible = visible & (inputs.own[:, :, None] - depth[:, None] < window)
        return visible[:, None]


def step(
    module: nn.Module, inputs: StepInputs, cache: StaticCache, features: tuple[int, ...] = ()
) -> tuple[Tensor, Tensor | None]:
    """Run one pass; returns logits [B, R, V] and features [B, R, n*H] (or None) of all rows, padded ones included."""
    mask = StaticMask(inputs, cache.capacity)
    with cache.written_at(mask.columns):
        return forward(module, inputs.tokens, mask.row_positions, mask, cache, features)


def chain(
    module: nn.Module,
    passes: list[StepInputs],
    cache: StaticCache,
    vocabulary: int,
    sampling: Sampling,
    drawn: Tensor,
) -> tuple[Tensor, Tensor | None]:
    """Draft a chain, one token per pass; each pass reads the token of the pass before it. Returns the tokens, int32
    [passes], and the distributions that they were drawn from, [passes, V], or None in greedy decoding.

    passes: the inputs of the passes. The host loads the first inputs. Every other pass has one row, which stands after
    the rows of the passes before it, and takes its prefix and its token from the device. Only the first ``vocabulary``
    tokens can be drawn. drawn: one uniform number per pass; unused in greedy decoding.
    """
    picks: list[Tensor] = []
    laws: list[Tensor] = []
    for place, inputs in enumerate(passes):
        if picks:
            inputs.prefix.copy_(passes[0].prefix)
            inputs.tokens.copy_(picks[-1])
        logits, _ = step(module, inputs, cache)
        last = logits[0, -1:, :vocabulary]
        if sampling.greedy:
            choice = last.argmax(-1)
        else:
            laws.append(distribution(last, sampling))
            choice = pick(laws[-1], drawn[place : place + 1])
        picks.append(choice.to(torch.int32))
    return torch.cat(picks), torch.cat(laws) if laws else None
