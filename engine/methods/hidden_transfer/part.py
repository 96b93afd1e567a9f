"""The maps of hidden transfer: each makes a pseudo state of a later token from a token's hidden state at a layer.

Wu et al., "Parallel Decoding via Hidden Transfer for Lossless Large Language Model Acceleration" (2024). Map i (from 0)
stands in front of ``layers[i]``: from the state that enters that layer at the token t, it makes a stand-in for the
state at the token t + 1 + i, whose logits predict the token t + 2 + i. A pseudo state sees the text up to its token,
and the pseudo states of the places before its own. Further places may join at higher layers.

No checkpoint is published. The layout here: ``maps.{place}.weight`` [H, H] and ``maps.{place}.bias`` [H], and a
config.json whose ``transfer_layers`` names the layer of each place.

Letters in shapes: K places, A nodes that pseudo states follow, H hidden size, R rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from engine.core.seen import MOST_PROBES, Join, Probes
from engine.errors import UserError
from engine.model.language_model import LanguageModel
from engine.parts.files import load_published, read_config, read_tensors, write_part
from engine.parts.kinds import Opener, PartKind

NOUN = "set of transfer maps"
LAYERS = "transfer_layers"


class TransferMaps(nn.Module):
    """layers: the layer of each place, none below the one before it."""

    def __init__(self, layers: Sequence[int], width: int) -> None:
        super().__init__()
        self.layers = tuple(layers)
        self.maps = nn.ModuleList(nn.Linear(width, width) for _ in self.layers)

    @property
    def places(self) -> int:
        return len(self.layers)

    def __len__(self) -> int:
        """The number of rows after a node."""
        return self.places

    def probes(self, nodes: Sequence[int], size: int) -> Probes:
        """The probes after each of these nodes of a tree of ``size`` nodes, place by place."""
        asked = len(nodes)
        parents = [*nodes, *(size + row for row in range((self.places - 1) * asked))]
        rows = [node + 1 for node in nodes]  # of the pass: the root has row 0
        joins = [
            Join(layer, asked, partial(self._pseudo, place, rows))
            for place, layer in enumerate(self.layers)
        ]
        return Probes(joins, parents)

    def _pseudo(self, place: int, rows: Sequence[int], states: Tensor) -> Tensor:
        """states [R, H] at the layer of this place -> pseudo states [A, H]"""
        return self.maps[place](states[list(rows)])

    def rows_behind(self, index: int, asked: int) -> range:
        """The rows of the probes after the index-th of the ``asked`` nodes."""
        return range(index, self.places * asked, asked)

    def logits(self, rows: Tensor) -> Tensor:
        """The target's logits at the rows, [K, V], are those of the places."""
        return rows

    def save(self, folder: Path, about: Mapping) -> None:
        """about: further fields of the config."""
        own = {"model_type": "hidden_transfer", LAYERS: list(self.layers)}
        write_part(folder, self.state_dict(), own | dict(about))


def check_layers(layers: Sequence[int], of_target: int) -> None:
    """Raises ValueError, whose message ends a sentence, if places cannot join at these layers."""
    if not 0 < len(layers) <= MOST_PROBES:
        raise ValueError(f"it has {len(layers)} places, where 1 to {MOST_PROBES} are allowed")
    if list(layers) != sorted(layers):
        raise ValueError(f"its {LAYERS} fall: {list(layers)}")
    if not 0 < layers[0] <= layers[-1] < of_target:
        raise ValueError(
            f"its {LAYERS} are {list(layers)}, where only layers with one of the target's {of_target} below them "
            "and one from them on can be named"
        )


def _load(path: str, target: LanguageModel, dtype, device: str) -> TransferMaps:
    folder = Path(path)
    config, tensors = read_config(folder), read_tensors(folder, NOUN)
    try:
        layers = config.get(LAYERS)
        if not isinstance(layers, list) or not all(type(one) is int for one in layers):
            raise ValueError(f"its config has no list of whole numbers as {LAYERS}")
        check_layers(layers, target.layers)
        with torch.device("meta"):
            made = TransferMaps(layers, target.hidden_size)
        load_published(made, {name: name for name in made.state_dict()}, tensors)
    except ValueError as error:
        raise UserError(f"{folder.name} holds no {NOUN} for {target.name}: {error}.") from None
    return made.to(device=device, dtype=target.dtype).eval().requires_grad_(False)


def tiny_transfer_maps(target: LanguageModel, opener: Opener | None = None) -> TransferMaps:
    """Maps for two places, both from the last layer: the identity, and the identity with noise."""
    made = TransferMaps((target.layers - 1, target.layers - 1), target.hidden_size)
    for place, each in enumerate(made.maps):
        torch.nn.init.eye_(each.weight)
        each.weight.data += 0.2 * place * torch.randn_like(each.weight)
        torch.nn.init.zeros_(each.bias)
    return made.requires_grad_(False)


KIND = PartKind("transfer_maps", NOUN, _load, tiny_transfer_maps)
