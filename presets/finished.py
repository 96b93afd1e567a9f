"""Where finished runs lie: those of listed examples in ``traces``, and the results of a method beside its card."""

import gzip
from pathlib import Path

from engine.finding import folders
from presets.listed import HERE, presets

TRACE, FIGURE, PRICE = "example.ndjson.gz", "figure.json", "price.json"
"""The results of a card: the trace of its own example, the drawn figure, the price of a lossy method."""


def beside_card(key: str, result: str) -> Path:
    """Where a result of this card lies, or would lie: in the method's folder, or in ``presets/methods`` for a card without one."""
    folder = folders().get(key)
    return HERE / "methods" / f"{key}.{result}" if folder is None else folder / result


def trace_file(name: str) -> Path:
    """Where the finished trace of an example lies, or would lie. A card's own example has the card's key as its name."""
    listed = any(name == preset.name for preset in presets())
    return HERE / "traces" / f"{name}.ndjson.gz" if listed else beside_card(name, TRACE)


def unpacked(path: Path) -> str:
    """The text of a compressed file."""
    return gzip.decompress(path.read_bytes()).decode()
