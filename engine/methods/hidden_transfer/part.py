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

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn

from engine.core.seen import MOST_PROBES, Join, Probes
from engine.parts.module_part import ModulePart

LAYERS = "transfer_layers"


class TransferMaps(ModulePart):
    """layers: the layer of each place, none below the one before it."""

    key, noun = "transfer_maps", "set of transfer maps"

    def __init__(self, layers: Sequence[int], width: int) -> None:
        super().__init__()
        self.layers = tuple(layers)
        self.maps = nn.ModuleList(nn.Linear(width, width) for _ in self.layers)

    @classmethod
    def of_files(cls, config, tensors, target):
        layers = config.get(LAYERS)
        if not isinstance(layers, list) or not all(type(layer) is int for layer in layers):
            raise ValueError(f"its config has no list of whole numbers as {LAYERS}")
        check_layers(layers, target.layers)
        return cls(layers, target.hidden_size)

    def fields(self):
        return {"model_type": "hidden_transfer", LAYERS: list(self.layers)}

    @classmethod
    def beginning(cls, layers: Sequence[int], width: int) -> TransferMaps:
        """Each pseudo state starts as the state from which it is made."""
        made = cls(layers, width)
        for each in made.maps:
            nn.init.eye_(each.weight)
            nn.init.zeros_(each.bias)
        return made

    @classmethod
    def tiny(cls, target, opener=None):
        """Maps for two places, both from the last layer: the identity, and the identity with noise."""
        made = cls.beginning((target.layers - 1, target.layers - 1), target.hidden_size)
        made.maps[1].weight.data += 0.2 * torch.randn_like(made.maps[1].weight)
        return made.eval().requires_grad_(False)

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


KIND = TransferMaps.kind()
