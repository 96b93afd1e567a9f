"""The Falcon cell predicts the next block of the target's features from a block of features and the tokens after them.

Gao et al., "Falcon: Faster and Parallel Inference of Large Language Models through Enhanced Semi-Autoregressive
Drafting and Custom-Designed Decoding Tree", AAAI 2025. Row i of a text is the pair of feature i and token i + 1, as in
EAGLE. The row's output stands for feature i + k, where k is the block's size. Two LSTM layers read the pairs in order.
Then the rows pass an attention layer and an MLP. The relaxed causal mask of the attention lets all rows of one block
attend to each other.

Letters in shapes: H hidden size, R rows, B blocks, k rows of a block.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor, nn

from engine.errors import UserError
from engine.methods.shared.eagle_cell import EagleLayer, Pieces
from engine.methods.shared.eagle_config import EagleConfig, tiny_config
from engine.model.language_model import LanguageModel
from engine.parts.files import in_dtype
from engine.parts.kinds import PartKind
from engine.parts.module_part import ModulePart

LSTM_LAYERS = 2
Memory = tuple[Tensor, Tensor]
"""The LSTM's memory: h and c, each [2, B, H]."""


@dataclass(frozen=True)
class FalconConfig:
    """The sizes of a Falcon cell. block_size: tokens of a draft pass. layer: the sizes of the attention layer."""

    block_size: int
    layer: EagleConfig

    @classmethod
    def read(cls, raw: dict) -> FalconConfig:
        """Read the sizes from the JSON object of a config. Raises KeyError, TypeError or ValueError if a size is
        missing or wrong."""
        size = raw["block_size"]
        if not isinstance(size, int) or not 2 <= size <= 16:
            raise ValueError(f"block_size is {size!r}")
        return cls(size, EagleConfig.read(raw, "eagle"))

    def write(self) -> dict:
        head = {"architectures": ["FalconDraftModel"], "block_size": self.block_size}
        return {**self.layer.write(), **head}

    def layers_of(self, target_layers: int) -> tuple[int, ...]:
        """Return the target's layers whose features the cell reads, as ``EagleConfig.layers_of`` does."""
        return self.layer.layers_of(target_layers)

    def __str__(self) -> str:
        return f"{self.block_size} {asdict(self.layer)}"


class FalconCell(ModulePart):
    """The weights of a Falcon cell. Embeddings and head are the target's.

    There is no published layout. Here the names are ``lstm.*`` and ``layer.*``, with a config like EAGLE's and
    ``block_size``.
    """

    key, noun = "falcon", "block drafter (Falcon)"

    def __init__(self, config: FalconConfig) -> None:
        super().__init__()
        self.config = config
        hidden = config.layer.hidden_size
        self.lstm = nn.LSTM(2 * hidden, hidden, LSTM_LAYERS, batch_first=True)
        self.layer = EagleLayer(config.layer, Pieces(), 0)
        frequencies, self._factor = config.layer.inverse_frequencies()
        self.register_buffer("_frequencies", torch.tensor(frequencies), persistent=False)

    @classmethod
    def of_files(cls, config, tensors, target):
        return cls(FalconConfig.read(config))

    def settle(self, config, target, folder):
        width = self.config.layer.hidden_size
        if target is not None and width != target.hidden_size:
            raise UserError(
                f"This block drafter was trained on another target than {target.name}: it reads states of "
                f"{width} numbers, and the target's have {target.hidden_size}."
            )

    def fields(self):
        return self.config.write()

    @classmethod
    def tiny(cls, target, opener=None):
        cell = cls(FalconConfig(2, tiny_config(target)))
        for weight in cell.lstm.parameters():
            weight.data *= 4  # as initialised, an LSTM says nearly the same for every text
        return cell.eval().requires_grad_(False)

    @property
    def block_size(self) -> int:
        return self.config.block_size

    def turn(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Return cos and sin of the rotary embedding at these positions, each of the shape [.., D] for ``places``
        [..]."""
        angles = places[..., None].float() * self._frequencies.float()
        angles = torch.cat([angles, angles], -1)
        dtype = self.lstm.weight_ih_l0.dtype
        return (angles.cos() * self._factor).to(dtype), (angles.sin() * self._factor).to(dtype)

    def listen(
        self, states: Tensor, embedded: Tensor, memory: Memory | None
    ) -> tuple[Tensor, Memory]:
        """Run the LSTM over pairs [B, R, H] in order. memory: the LSTM's memory before them. Returns rows [B, R, H] and
        the memory after them."""
        return self.lstm(torch.cat([embedded, states], -1), memory)

    def forward(self, rows: Tensor, turn: tuple[Tensor, Tensor], attend) -> Tensor:
        """Map rows [.., R, H] from ``listen`` to the states [.., R, H] k places later. attend: computes the attention
        of queries, keys and values of the rows; as in ``engine.methods.shared.eagle_cell``, but without the layer's
        number."""
        return self.layer(rows, rows, turn, attend)


@lru_cache(maxsize=4)
def open_cell(path: str, dtype: torch.dtype, device: str) -> FalconCell:
    """Return the cell in this folder, opened once per process. Raises UserError if the cell cannot be opened."""
    return in_dtype(FalconCell.read(path), dtype).to(device).requires_grad_(False)


def _load(path: str, target: LanguageModel, dtype, device: str) -> FalconCell:
    cell = open_cell(path, target.dtype, device)  # it computes on the target's states
    cell.settle({}, target, Path(path).name)
    return cell


KIND = PartKind(FalconCell.key, FalconCell.noun, _load, FalconCell.tiny)
