"""Floods of marks, of invisible characters and of direction marks do not change the picture's layout."""

import pytest

from tests.viz.builder import Toy
from viz.race import joined

FLOODS = [
    "a" + "\u0301" * 300,
    "\u202e" * 20 + "turned",
    "\u2067" + "\u202b" * 40,
    "\u200b" * 300,
    "\ufe0f" * 80 + "v",
    "\U000e0041" * 120,
    "\u115f\u3164" * 60,
    "b" + "\u0489" * 60 + "c",
    "שלום",
    " plain",
    "\ufdfd" * 12,
    "z" * 300,
]
MEASURE = """() => {
  const root = document.getElementById("view"), texts = [];
  const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) texts.push(walk.currentNode.data);
  const floods = texts.filter((text) => /[\\p{M}\\p{DI}]{5}/u.test(text));
  const turned = texts.filter((text) => /[\\u202a-\\u202e\\u2066-\\u2069\\u200e\\u200f]/.test(text));
  const boxes = [...root.querySelectorAll(".ds-token")].map((t) => [...t.getClientRects()]).filter((r) => r.length);
  const tall = boxes.flat().filter((box) => box.height > 60).length;
  const behind = boxes.slice(1).filter((now, i) => {
    const last = boxes[i][boxes[i].length - 1], first = now[0];
    return Math.abs(last.top - first.top) < 4 && first.left < last.right - 2;
  }).length;
  const page = document.documentElement;
  return {floods, turned, tall, behind, wide: page.scrollWidth - page.clientWidth, tokens: boxes.length};
}"""
GOOD = {"floods": [], "turned": [], "tall": 0, "behind": 0, "wide": 0}


def flooded(style: str, **fields) -> str:
    return Toy(steps=8, style=style, words=FLOODS, prompt=" ".join(FLOODS), **fields).ndjson()


@pytest.mark.parametrize("width", [1280, 390])
def test_a_run_keeps_its_layout(replay, width):
    page = replay(flooded("tree"))
    page.set_viewport_size({"width": width, "height": 860})
    for step in (0, 3, 7):
        page.evaluate(f"view.goto({step}); view.select(0)")
        found = page.evaluate(MEASURE)
        assert found.pop("tokens") > 0
        assert found == GOOD


def test_a_race_keeps_its_layout(replay_race):
    lanes = {"chain": flooded("chain", key="chain"), "tree": flooded("tree", key="tree")}
    page = replay_race(joined(lanes))
    found = page.evaluate(MEASURE)
    assert found.pop("tokens") > 0
    assert found == GOOD


def test_honest_marks_stay(script):
    """Vietnamese, Hindi, Thai, Arabic, a family and a heart: none of them has more than four marks in a row."""
    words = ["Việt Nam ệ", "नमस्ते क्षि", "ก็ที่นี้", "مُحَمَّدٌ", "❤️‍🔥", "e\u0301\u0323\u0302\u0308"]
    shown = script.evaluate("words => words.map((w) => Draftscope.runningText(w))", words)
    assert [one for one in shown if "…" in one] == []
    assert shown[:4] == words[:4] and shown[5] == words[5]
