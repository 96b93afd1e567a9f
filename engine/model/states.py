"""The memory of a layer with a recurrent state, and the way in which such a layer reads a whole tree in one pass.

Wu et al., "STree: Speculative Tree Decoding for Hybrid State-Space Models" (2025). In a Mamba-2 layer the state after
row i is a_i times the state before it, plus dt_i B_i x_i. The transitions a_i are numbers, so the transition along a
path is the product of its numbers. The products from the last committed token to each row are computed once for the
whole tree; the quotient of two products is the transition from a row's ancestor to the row. Then the output of every
row is one weighted sum over its ancestors and the committed state: no path is scanned by itself, and no row is read
twice. The state after the kept path is another such sum.

A chain is a tree without branches, so a prompt is read in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers.activations import ACT2FN

from engine.model.cache import KVCache
from engine.model.row_mask import RowMask

_MIXER = ("in_proj", "conv1d", "A_log", "D", "dt_bias", "out_proj", "norm", "n_groups")


def mixers_of(module: nn.Module) -> dict[int, nn.Module]:
    """The mixers of a module by layer: its parts with a state whose transitions are numbers (Mamba-2)."""
    mixers = [part for part in module.modules() if _is_mixer(part)]
    return {part.layer_idx: part for part in mixers}


def _is_mixer(part: nn.Module) -> bool:
    """Whether this part is a Mamba-2 mixer. Mamba-1 has no ``dt_bias``, and its transitions differ between channels."""
    return all(hasattr(part, name) for name in _MIXER) and part.A_log.dim() == 1


class Lineage:
    """The rows of a pass and their ancestors. sees: bool [R, S], whether each of the S scratch rows is the same as, or
    an ancestor of, each of the R rows of the pass."""

    def __init__(self, mask: RowMask) -> None:
        visible = mask.visible
        if visible is None:  # every row sees all scratch rows
            shape = len(mask.depths), mask.scratch
            self.sees = mask.row_positions.new_ones(shape, dtype=torch.bool)
        else:
            self.sees = visible[:, mask.committed :]
        self._windows: dict[int, Tensor] = {}

    def windows(self, kernel: int) -> Tensor:
        """For each row, the numbers of the last ``kernel`` rows of its path, with the row itself at the end: [R,
        kernel]. Number 0 is the oldest of the last ``kernel - 1`` committed tokens; the scratch rows follow these
        tokens."""
        if kernel not in self._windows:
            rows, scratch = self.sees.shape
            number = torch.arange(kernel - 1 + scratch, device=self.sees.device)
            behind = torch.where(self.sees, number[kernel - 1 :], -1)
            path = torch.cat([number[: kernel - 1].expand(rows, -1), behind], -1)
            self._windows[kernel] = path.topk(kernel, sorted=True).values.flip(-1)
        return self._windows[kernel]


@dataclass(frozen=True)
class Inputs:
    """The contributions of S scratch rows to a state: C channels of the convolution, H heads of P numbers, G groups of
    N numbers.

    given: the rows before the convolution, [S, C]. x: [S, H, P], after the convolution and times the step size. b: the
    vectors B after the convolution, [S, G, N]. logs: the logarithm of each row's transition, float64 [S, H]. totals:
    the sum of these logarithms along the path to each row, [S, H].
    """

    given: Tensor
    x: Tensor
    b: Tensor
    logs: Tensor
    totals: Tensor

    def with_rows(self, more: Inputs) -> Inputs:
        names = ("given", "x", "b", "logs", "totals")
        return Inputs(*(torch.cat([getattr(self, n), getattr(more, n)]) for n in names))


class StateLayer:
    """The memory of one layer with a state. state: [H, P, N], for each of H heads a matrix of head size P and state
    size N, after the committed tokens, in float32 or finer. window: the last inputs of the layer's convolution, which
    has C channels and width K: [K - 1, C]. scratch: the contributions of the scratch rows, or None."""

    def __init__(self, mixer: nn.Module) -> None:
        weight = mixer.conv1d.weight
        self.kernel = weight.shape[-1]
        shape = mixer.num_heads, mixer.head_dim, mixer.ssm_state_size
        wide = torch.promote_types(weight.dtype, torch.float32)
        self.state = weight.new_zeros(shape, dtype=wide)
        self.window = weight.new_zeros(self.kernel - 1, weight.shape[0])
        self.scratch: Inputs | None = None

    def read(self, mixer: nn.Module, given: Tensor, steps: Tensor, lineage: Lineage) -> Tensor:
        """Read R rows, and add their contributions to ``scratch``; returns the layer's output [R, H * P].

        given: the rows before the convolution of C channels, [R, C]. steps: the step sizes before the bias is added,
        [R, H], one per head. P: the numbers per head.
        """
        before = (
            self.window if self.scratch is None else torch.cat([self.window, self.scratch.given])
        )
        inputs = torch.cat([before, given])[lineage.windows(self.kernel)]
        mixed = torch.einsum("rkc,ck->rc", inputs, mixer.conv1d.weight.squeeze(1))
        if mixer.conv1d.bias is not None:
            mixed = mixed + mixer.conv1d.bias
        mixed = ACT2FN[mixer.activation](mixed)
        heads, groups, width = mixer.num_heads, mixer.n_groups, mixer.ssm_state_size
        x, b, c = mixed.to(self.state.dtype).split(
            [mixer.intermediate_size, groups * width, groups * width], -1
        )
        x, b, c = (
            x.unflatten(-1, (heads, -1)),
            b.unflatten(-1, (groups, -1)),
            c.unflatten(-1, (groups, -1)),
        )
        step = F.softplus(steps + mixer.dt_bias).clamp(*mixer.time_step_limit).to(self.state.dtype)
        self._add(
            given, x * step[..., None], b, -mixer.A_log.double().exp() * step.double(), lineage
        )
        out = self._summed(c, lineage) + mixer.D[:, None] * x
        return out.flatten(-2).to(given.dtype)

    def _add(self, given: Tensor, x: Tensor, b: Tensor, logs: Tensor, lineage: Lineage) -> None:
        before = None if self.scratch is None else self.scratch.logs
        every = logs if before is None else torch.cat([before, logs])
        fresh = Inputs(given, x, b, logs, lineage.sees.double() @ every)
        self.scratch = fresh if self.scratch is None else self.scratch.with_rows(fresh)

    def _summed(self, c: Tensor, lineage: Lineage) -> Tensor:
        """The values [R, H, P] that R rows get from the state and from their ancestors: P numbers for each of H heads.
        c: the rows' vectors C, [R, G, N], in G groups."""
        rows, heads = self.scratch, self.state.shape[0]
        per_group = heads // c.shape[1]
        own = rows.totals[-len(c) :]
        between = own[:, None] - rows.totals[None]  # [R, S, H]
        between = between.masked_fill(~lineage.sees[..., None], float("-inf"))
        likeness = torch.einsum("rgn,sgn->rsg", c, rows.b).repeat_interleave(per_group, -1)
        weights = between.exp().to(c.dtype) * likeness
        carried = torch.einsum("rhn,hpn->rhp", c.repeat_interleave(per_group, 1), self.state)
        carried = carried * own.exp().to(c.dtype)[..., None]
        return carried + torch.einsum("rsh,shp->rhp", weights, rows.x)

    def keep(self, path: list[int]) -> None:
        """Advance the state past these scratch rows, which form a path from the last committed token; drop all scratch
        rows."""
        rows, self.scratch = self.scratch, None
        if rows is None or not path:
            return
        total = rows.totals[path[-1]]
        weights = (total - rows.totals[path]).exp().to(self.state.dtype)
        b = rows.b[path].repeat_interleave(self.state.shape[0] // rows.b.shape[1], 1)
        fresh = torch.einsum("sh,shp,shn->hpn", weights, rows.x[path], b)
        self.state = self.state * total.exp().to(self.state.dtype)[:, None, None] + fresh
        self.window = torch.cat([self.window, rows.given[path]])[-(self.kernel - 1) :]

    def forget(self) -> None:
        """Reset the memory to that of an empty text."""
        self.state, self.window = torch.zeros_like(self.state), torch.zeros_like(self.window)
        self.scratch = None

    def take_over(self, source: StateLayer) -> None:
        """Start from the memory of another session. States are never written in place, so nothing is copied."""
        self.state, self.window, self.scratch = source.state, source.window, None


class HybridCache(KVCache):
    """The keys and values of every layer, and the memories of layers with a state. lineage: the ancestors of the rows
    of the current pass."""

    def __init__(self, layers, states: dict[int, StateLayer]) -> None:
        super().__init__(layers)
        self.states = states
        self.lineage: Lineage | None = None

    def keep(self, start: int, rows: list[int]) -> None:
        super().keep(start, rows)
        for state in self.states.values():
            state.keep(rows)


def tree_forward(mixer: nn.Module, own):
    """A forward that lets a mixer read trees with a ``HybridCache``. With any other cache it calls ``own``, which is
    the mixer's own forward."""

    def forward(hidden_states: Tensor, cache_params=None, **named) -> Tensor:
        if not isinstance(cache_params, HybridCache):
            return own(hidden_states, cache_params=cache_params, **named)
        sizes = [mixer.intermediate_size, mixer.conv_dim, mixer.num_heads]
        gate, projected, steps = mixer.in_proj(hidden_states)[0].split(sizes, -1)
        layer = cache_params.states[mixer.layer_idx]
        out = layer.read(mixer, projected, steps, cache_params.lineage)
        return mixer.out_proj(mixer.norm(out, gate).to(hidden_states.dtype))[None]

    return forward
