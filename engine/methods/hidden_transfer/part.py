"""The maps of hidden transfer: each map turns a token's hidden state at a layer into a pseudo state of a later token.

Wu et al., "Parallel Decoding via Hidden Transfer for Lossless Large Language Model Acceleration" (2024). Map i (from
0), also called place i, stands in front of ``layers[i]``. From the state that enters this layer at the token t, it
makes an estimate of the state at the token t + 1 + i, whose logits predict the token t + 2 + i. A pseudo state attends
to the text up to the token t and the pseudo states of the places before its own. Later places may stand in front of
higher layers; their pseudo states then enter the pass there.

No checkpoint is published. The layout here is ``maps.{place}.weight`` [H, H] and ``maps.{place}.bias`` [H], and a
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
    """The maps of one target. layers: for each place, the layer before which its pseudo states enter; the layers never
    fall from one place to the next."""

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
        """Return untrained maps: at first each pseudo state equals the state from which it is computed."""
        part = cls(layers, width)
        for linear in part.maps:
            nn.init.eye_(linear.weight)
            nn.init.zeros_(linear.bias)
        return part

    @classmethod
    def tiny(cls, target, opener=None):
        """Return maps for two places, both at the last layer: the identity, and the identity with noise."""
        part = cls.beginning((target.layers - 1, target.layers - 1), target.hidden_size)
        part.maps[1].weight.data += 0.2 * torch.randn_like(part.maps[1].weight)
        return part.eval().requires_grad_(False)

    @property
    def places(self) -> int:
        return len(self.layers)

    def __len__(self) -> int:
        """Return how many probe rows follow a node: one for each place."""
        return self.places

    def probes(self, nodes: Sequence[int], size: int) -> Probes:
        """Return the probe rows that follow these nodes, ordered by place. size: the number of nodes of the whole
        tree."""
        count = len(nodes)
        parents = [*nodes, *(size + row for row in range((self.places - 1) * count))]
        rows = [node + 1 for node in nodes]  # row numbers in the pass; the root has row 0
        joins = [
            Join(layer, count, partial(self._pseudo, place, rows))
            for place, layer in enumerate(self.layers)
        ]
        return Probes(joins, parents)

    def _pseudo(self, place: int, rows: Sequence[int], states: Tensor) -> Tensor:
        """Return the pseudo states [A, H] of this place. states: [R, H], all states that enter the place's layer. rows:
        for each of the A nodes, the number of its row in ``states``."""
        return self.maps[place](states[list(rows)])

    def rows_behind(self, index: int, asked: int) -> range:
        """Return which of all probe rows belong to the node number ``index``, if ``asked`` nodes have probe rows."""
        return range(index, self.places * asked, asked)

    def logits(self, rows: Tensor) -> Tensor:
        """Return the logits [K, V] of the places: the target's logits [K, V] at a node's probe rows, unchanged."""
        return rows


def check_layers(layers: Sequence[int], of_target: int) -> None:
    """Raise ValueError if pseudo states cannot enter the pass before these layers, one for each place; the message is
    the end of a sentence that the caller begins. of_target: the number of the target's layers."""
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
