"""Names the files of finished runs: listed examples have theirs in ``traces``, and a method has its results beside its
card."""

import gzip
import json
from pathlib import Path

from engine.finding import folders
from engine.rules import verifiers
from engine.trace.reading import to_line
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


def told_anew(trace: str) -> str:
    """Return the text of a trace, with the sentences that its rule has now in place of those that it had when the trace
    was made. The sentences of a rule that is no longer here stay."""
    header, rest = trace.split("\n", 1)
    run = json.loads(header)
    rule = verifiers().get(run["verifier"]["key"])
    if rule is None or run["verifier"].get("sentences") == rule.sentences:
        return trace
    run["verifier"]["sentences"] = dict(rule.sentences)
    return to_line(run) + rest


def unpacked(path: Path) -> str:
    """Return the text of a file that gzip has compressed."""
    return gzip.decompress(path.read_bytes()).decode()
