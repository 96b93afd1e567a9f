"""A run whose tokens are patches: the picture replaces the text, the tree shows patches, and bad numbers do no harm."""

import json

import pytest

from engine.trace import read_trace
from presets import trace_text
from tests.viz.builder import Toy

CELLS = """() => [...document.querySelectorAll('#text .ds-picture [data-index]')].map((cell) => ({
  status: cell.dataset.status, refused: Boolean(cell.querySelector('.ds-refused')),
  inks: [...cell.querySelector('.ds-patch').querySelectorAll('.ds-ink')].map((ink) => [ink.getAttribute('d'), Number(ink.getAttribute('fill-opacity'))]),
}))"""
GHOSTS = (
    "() => [...document.querySelectorAll('[data-guess]')].map((one) => Number(one.dataset.guess))"
)


@pytest.fixture(scope="module")
def trace():
    return read_trace(trace_text("picture"))


def written(trace, steps):
    return [token for step in trace.steps[:steps] for token in step["output"]["tokens"]]


def pixels(cell, side=2):
    """Return pixel -> its ink, from the paths of a cell. Each square begins with M x y."""
    found = [0.0] * side * side
    for path, ink in cell["inks"]:
        for square in path.split("M")[1:]:
            x, y = square.split("h")[0].split(" ")
            found[int(y) * side + int(x)] = ink
    return found


def test_the_picture_grows_patch_by_patch(replay, trace):
    page = replay(trace.to_ndjson())
    at = next(
        index
        for index, step in enumerate(trace.steps)
        if step["output"]["final"] == "recovered" and "accepted" in step["nodes"]["status"]
    )
    page.evaluate(f"view.goto({at})")
    cells, tokens = page.evaluate(CELLS), written(trace, at + 1)
    assert len(cells) == len(tokens)
    for cell, token in zip(cells, tokens, strict=True):
        levels = [token // 4**place % 4 / 3 for place in (3, 2, 1, 0)]
        assert pixels(cell) == pytest.approx(levels, abs=0.01)
    last = trace.steps[at]["output"]["tokens"]
    assert [cell["status"] for cell in cells[-len(last) :]] == [
        *["accepted"] * (len(last) - 1),
        "recovered",
    ]
    assert [cell["refused"] for cell in cells[-2:]] == [False, True]
    nodes = trace.steps[at]["nodes"]
    beyond = [node for node, depth in enumerate(nodes["depth"]) if depth > len(last)]
    assert page.evaluate(GHOSTS) == beyond[: 64 - len(tokens)]
    assert page.locator("#tree [data-node='0'] .ds-paper").count() == 1
    assert page.locator("#text .ds-output [data-index]").count() == 0, "no text beside it"
    page.locator("#text [data-index='0']").click()
    assert page.evaluate("view.step") == 0


def test_a_text_after_a_picture_is_a_text(replay, trace):
    page = replay(trace.to_ndjson())
    toy = Toy(steps=3).ndjson()
    page.evaluate("text => { view.feed(text); view.pause(); view.goto(2); }", toy)
    assert page.locator("#text .ds-picture").is_hidden()
    assert page.locator("#text .ds-output [data-index]").count() > 0


@pytest.mark.parametrize(
    "odd", [{"patch": 0}, {"width": 10**9}, {"levels": "<b>"}, {"first": -1}, {"height": None}]
)
def test_numbers_that_make_no_picture_are_drawn_as_text(replay, trace, odd):
    run = {**trace.run, "picture": {**trace.run["picture"], **odd}}
    lines = [run, *trace.steps, trace.summary]
    page = replay("".join(json.dumps(line) + "\n" for line in lines))
    page.evaluate("view.goto(3)")
    assert page.locator("#text .ds-picture").is_hidden()
    assert page.locator("#text .ds-output [data-index]").count() == len(written(trace, 4))
