"""Toy traces that show everything a trace may carry: each kind of exhibit, spans, merged sources, a rule's sentences."""

import json
import random

from tests.viz.builder import Toy

KINDS = ("words", "table", "matrix", "lattice", "layers", "gauge", "curve", "clouds")
SOURCES = ("draft model", "context 17:20", "matrix")


def ndjson(lines: list[dict]) -> str:
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def exhibited(toy: Toy | None = None, words: list[str] | None = None) -> list[dict]:
    """Return the lines of a run whose steps have exhibits of all kinds and a meter. words: the words of their texts."""
    lines = (toy or Toy(steps=8, budget=20, seed=2)).lines()
    for step in lines[1:-1]:
        draw = random.Random(step["index"])
        step["drafter"]["exhibits"] = [exhibit(kind, draw, words) for kind in KINDS]
        step["drafter"]["exhibits"].append({**exhibit("gauge", draw, words), "meter": True})
    return lines


def overlapped(lines: list[dict]) -> list[dict]:
    """Return the same run as if drafting went on while the target verified: with spans, and with the time on the
    clock."""
    at = 5.0
    for step in lines[1:-1]:
        spent = step["milliseconds"]
        draft, verify = max(spent["draft"], 1.0), spent["verify"]
        step["spans"] = [
            {"lane": "draft", "what": "draft", "start": at, "end": at + draft},
            {"lane": "verify", "what": "verify", "start": at + 0.4, "end": at + 0.4 + verify},
        ]
        spent["total"] = max(draft, verify + 0.4)
        at += spent["total"] + 0.1
    lines[0]["loop"] = "overlapped"
    return lines


def merged(lines: list[dict], sources=SOURCES) -> list[dict]:
    """Return the same run with nodes from several sources in every tree."""
    for step in lines[1:-1]:
        size = len(step["nodes"]["token"])
        step["nodes"]["source"] = [sources[node % len(sources)] for node in range(size)]
    return lines


def exhibit(kind: str, draw: random.Random, words: list[str] | None = None) -> dict:
    def text(usual: str) -> str:
        return draw.choice(words) if words else usual

    def token(word: str = " dog") -> dict:
        return {"token": draw.randrange(4096), "piece": text(word)}

    return {"kind": kind, "title": text(TITLES[kind]), "note": text(NOTES[kind])} | MADE[kind](
        draw, text, token
    )


def _words(draw, text, token) -> dict:
    lines = [
        text("Two masks were read, one was filled."),
        [text("Copied after "), token(" the"), token(" cat")],
    ]
    return {"lines": lines}


def _table(draw, text, token) -> dict:
    rows = [[token(word), draw.random(), draw.randrange(90), draw.random() < 0.5] for word in TALE]
    return {
        "columns": [text("token"), text("probability"), text("seen"), text("kept")],
        "rows": [*rows, [text("all of them"), None, 312, None]],
    }


def _matrix(draw, text, token) -> dict:
    rows, columns = [token(word) for word in TALE], [token(word) for word in reversed(TALE)]
    values = [[draw.choice((None, draw.random() ** 2)) for _ in columns] for _ in rows]
    return {"rows": rows, "columns": columns, "values": values}


def _lattice(draw, text, token) -> dict:
    columns = [
        [token(word) | {"p": round(0.6 / (1 + rank), 3)} for rank, word in enumerate(TALE[:4])]
        for _ in range(6)
    ]
    return {"columns": columns, "path": [draw.randrange(4) for _ in columns]}


def _layers(draw, text, token) -> dict:
    layers = [
        {"state": "skipped" if draw.random() < 0.3 else "run", "value": draw.random()}
        for _ in range(15)
    ]
    return {"layers": [*layers, {"state": "adapter", "label": text("head")}, {"state": "exit"}]}


def _gauge(draw, text, token) -> dict:
    value = draw.random()
    return {"value": value, "minimum": 0, "maximum": 1, "mark": 0.8, "unit": text("nats")}


def _curve(draw, text, token) -> dict:
    x = list(range(1, 13))
    series = [
        {"name": text(name), "y": [None if point == 4 else fall**point for point in x]}
        for name, fall in (("expected", 0.8), ("seen", 0.6 + 0.3 * draw.random()))
    ]
    return {"x": x, "series": series, "x_label": text("length"), "y_label": text("kept"), "mark": 5}


def _clouds(draw, text, token) -> dict:
    cloud = lambda name: {
        "name": text(name),
        "points": [[draw.gauss(0, 1), draw.gauss(0, 1)] for _ in range(12)],
    }
    names = (("target",), ("accepted", "rejected"), ("accepted", "recovered"))
    return {"panels": [{"name": text("cloud"), "clouds": [cloud(n) for n in row]} for row in names]}


TALE = (" the", " cat", " dog", " sat", " on", " mat", "\n", ".")
MADE = {
    "words": _words,
    "table": _table,
    "matrix": _matrix,
    "lattice": _lattice,
    "layers": _layers,
    "gauge": _gauge,
    "curve": _curve,
    "clouds": _clouds,
}
TITLES = {
    "words": "What the drafter did",
    "table": "Candidates of the next place",
    "matrix": "Who follows whom",
    "lattice": "Candidates of the block",
    "layers": "Layers of the draft pass",
    "gauge": "Entropy of the draft",
    "clouds": "Where the points lie",
    "curve": "Tokens that a longer draft would keep",
}
NOTES = {
    "words": "",
    "table": "Sorted by the target’s probability.",
    "matrix": "Counts of the last 400 tokens.",
    "lattice": "",
    "layers": "Skipped layers cost nothing.",
    "gauge": "Above the mark it stops drafting.",
    "clouds": "All on the same axes.",
    "curve": "The mark is the length that was chosen.",
}
