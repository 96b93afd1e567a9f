"""Each thing has one name in all texts that a visitor reads."""

import json
import re
from collections.abc import Iterator

from app import words
from app.example_menu import preset_menu, race_menu
from app.menu import drafter_menu, offer
from engine.methods import drafters
from presets import HERE, cards

OTHER_WORDS = re.compile(r"\bbudgets?\b|\bexact (rule|method)s?\b|\bexactness\b", re.IGNORECASE)
"""Other words for nodes, and for lossless and lossy, which must not be used."""


def read_by_visitors() -> Iterator[str]:
    for about in drafter_menu().values():
        yield from (
            f"{option['label'] or option['name']}: {option['help']}" for option in about["options"]
        )
        yield about["summary"]
    for rule in offer()["rules"].values():
        yield from (rule["title"], rule["summary"])
    for entry in (*preset_menu().values(), *race_menu().values()):
        yield from (entry["title"], entry["look_for"])
    yield from (f"{card.title} {card.mechanism} {card.watch}" for card in cards().values())
    for lesson in sorted((HERE / "lessons").glob("*.md")):
        yield from lesson.read_text("utf-8").replace("race-budget", "").splitlines()
    yield json.dumps([value for name, value in vars(words).items() if name.isupper()])


def test_nodes_and_lossless_have_no_other_names():
    labels = {
        option["label"] or option["name"]
        for key, about in drafter_menu().items()
        for option in about["options"]
        if option["name"] in ("budget", "nodes") and drafters()[key].size_option == option["name"]
    }
    assert {label.lower() for label in labels} == {"nodes"}
    renamed = (line for line in read_by_visitors() if not line.startswith("Nodes: "))
    assert [line for line in renamed if OTHER_WORDS.search(line)] == []


def test_whoever_looks_for_width_finds_the_nodes():
    (nodes,) = (o for o in drafter_menu()["dyspec"]["options"] if o["name"] == "budget")
    assert "wider" in nodes["help"]
    assert any(
        "Wider" in entry["title"] and "nodes" in entry["title"] for entry in race_menu().values()
    )
    assert not any(o["label"].lower() == "width" for o in drafter_menu()["dyspec"]["options"])
