"""The exhibits of a SWIFT step: the layers that draft, and the matchness of the skip set."""

from engine.core.exhibits import Exhibit, Gauge, Layer, Layers
from engine.model.layers import ATTENTION, MLP


def shown(layers: int, skipped: frozenset, matchness: float, tried: int) -> list[Exhibit]:
    """Return the exhibits. layers: the target's number of layers. skipped: pairs of a layer and a sublayer. tried: the
    number of skip sets tried so far."""
    return [
        Layers("Layers that draft", [_layer(layer, skipped) for layer in range(layers)]),
        Gauge("Matchness of the best skip set", matchness, note=f"Skip sets tried: {tried}."),
    ]


def _layer(layer: int, skipped: frozenset) -> Layer:
    missing = [part for part in (ATTENTION, MLP) if (layer, part) in skipped]
    label = f"without {missing[0]}" if len(missing) == 1 else ""
    return Layer("skipped" if len(missing) == 2 else "run", label=label)
