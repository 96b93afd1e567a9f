"""Names the files of finished runs: listed examples have theirs in ``traces``, and a method has its results beside its
card."""

import gzip
from pathlib import Path

from engine.finding import folders
from presets.listed import HERE, presets

TRACE, FIGURE, PRICE = "example.ndjson.gz", "figure.json", "price.json"
"""The results of a card: the trace of its own example, the drawn figure, the price of a lossy method."""


def beside_card(key: str, result: str) -> Path:
    """Return the file for a result of this card, whether it exists or not: in the method's folder, or in
    ``presets/methods`` for a card without a folder."""
    folder = folders().get(key)
    return HERE / "methods" / f"{key}.{result}" if folder is None else folder / result


def trace_file(name: str) -> Path:
    """Return the file of an example's finished trace, whether it exists or not. A card's own example has the card's key
    as its name."""
    listed = any(name == preset.name for preset in presets())
    return HERE / "traces" / f"{name}.ndjson.gz" if listed else beside_card(name, TRACE)


def unpacked(path: Path) -> str:
    """Return the text of a file that gzip has compressed."""
    return gzip.decompress(path.read_bytes()).decode()
