"""The text a block-diffusion drafter has read, as keys and values, and the block it fills behind it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from engine.cpu.lean_block import LeanBlock
from engine.gpu.block_slot import BlockSlot
from engine.gpu.choice import Choice
from engine.gpu.slots import BufferSets
from engine.parts.dflash_model import DFlashModel
from engine.target.language_model import LanguageModel
from engine.transfer import to_device

CAPACITY = 512  # first size of the buffers; they double when they must


class BlockContext(ABC):
    """One sequence. Letters in shapes as in ``engine.cpu.lean_block``."""

    @abstractmethod
    def read(self, features: Tensor) -> None:
        """Append committed rows. features: [T, n*H]."""

    @abstractmethod
    def denoise(self, embeddings: Tensor) -> Tensor:
        """Block rows [B, H] behind what was read -> hidden [B, H] after the final norm."""

    def draft(
        self, tokens: Sequence[int], target: LanguageModel, choice: Choice, drawn: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        """What is chosen for a block of tokens, the root first and masks behind it. drawn: uniforms
        on the host, of as many rows as will be looked at; None if nothing is drawn."""
        device = target.device
        hidden = self.denoise(target.embed(to_device(torch.tensor(tokens), device)))
        held = torch.zeros(choice.length, dtype=torch.float64)
        if drawn is not None:
            held[: len(drawn)] = drawn
        return choice(target.head(hidden[1 : choice.length + 1]), to_device(held, device))


def block_context(drafter: DFlashModel) -> BlockContext:
    """Lean on the CPU, on static buffers on CUDA, where passes over them become CUDA graphs, and
    plainly through the module elsewhere: the same weights, the same numbers."""
    device = drafter.norm.weight.device
    if device.type == "cuda":
        if getattr(drafter, "slots", None) is None:
            drafter.slots = slots_of(drafter)
        # where nothing can be captured, of which the log speaks, the plain way is the better one
        return StaticContext(drafter.slots) if drafter.slots.usable else ModuleContext(drafter)
    if device.type != "cpu":
        return ModuleContext(drafter)
    if getattr(drafter, "lean", None) is None:
        drafter.lean = LeanBlock(drafter)
    return LeanContext(drafter.lean)


class LeanContext(BlockContext):
    """See ``BlockContext``."""

    def __init__(self, lean: LeanBlock) -> None:
        self._lean = lean
        self._cache = lean.cache(CAPACITY)

    def read(self, features: Tensor) -> None:
        self._lean.read(features, self._cache)

    def denoise(self, embeddings: Tensor) -> Tensor:
        return self._lean.denoise(embeddings, self._cache)


def slots_of(drafter: DFlashModel) -> BufferSets:
    device, layers = drafter.norm.weight.device, len(drafter.layers)
    return BufferSets(BlockSlot, drafter, layers, "The diffusion drafter", device)


class StaticContext(BlockContext):
    """See ``BlockContext``."""

    def __init__(self, slots: BufferSets) -> None:
        self._slot = slots.take(self, CAPACITY)
        self._length = 0

    def read(self, features: Tensor) -> None:
        self._slot.read(features, self._length)
        self._length += len(features)

    def denoise(self, embeddings: Tensor) -> Tensor:
        return self._slot.denoise(embeddings, self._length)

    def draft(self, tokens, target, choice, drawn):
        return self._slot.draft(tokens, self._length, target, choice, drawn)


class ModuleContext(BlockContext):
    """See ``BlockContext``."""

    def __init__(self, drafter: DFlashModel) -> None:
        self._drafter = drafter
        self._columns: list[tuple[_Column, _Column]] = []
        self._length = 0

    def read(self, features: Tensor) -> None:
        projected = self._drafter.project(features)
        fresh = self._drafter.context_kv(projected, self._places(len(features), features.device))
        if not self._columns:
            self._columns = [(_Column(k), _Column(v)) for k, v in fresh]
        else:
            for (keys, values), (k, v) in zip(self._columns, fresh, strict=True):
                keys.append(k)
                values.append(v)
        self._length += len(features)

    def denoise(self, embeddings: Tensor) -> Tensor:
        context = [(keys.rows, values.rows) for keys, values in self._columns]
        places = self._places(len(embeddings), embeddings.device)
        return self._drafter.forward_block(embeddings, places, context)

    def _places(self, count: int, device: torch.device) -> Tensor:
        return torch.arange(self._length, self._length + count, device=device)


class _Column:
    """A growing [Hkv, T, D] buffer; doubles, so that appending stays linear."""

    def __init__(self, rows: Tensor) -> None:
        self._buffer = rows
        self._used = rows.shape[1]

    @property
    def rows(self) -> Tensor:
        return self._buffer[:, : self._used]

    def append(self, rows: Tensor) -> None:
        end = self._used + rows.shape[1]
        if end > self._buffer.shape[1]:
            heads, _, width = rows.shape
            larger = rows.new_empty(heads, max(end, 2 * self._buffer.shape[1]), width)
            larger[:, : self._used] = self.rows
            self._buffer = larger
        self._buffer[:, self._used : end] = rows
        self._used = end
