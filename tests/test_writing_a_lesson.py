"""The lesson in docs/writing-a-lesson.md is read as written there, listed and answered by the runs."""

import re
from pathlib import Path

import pytest

from presets.lessons import HERE, entries, lesson, shelf
from presets.lessons.directives import KINDS
from presets.lessons.moments import MOMENTS
from presets.lessons.questions import JUDGES

PAGE = (Path(__file__).parents[1] / "docs" / "writing-a-lesson.md").read_text("utf-8")
BLOCK = re.compile(r"<!-- file: presets/lessons/(\S+) -->\n````\w+\n(.*?)````", re.DOTALL)


@pytest.fixture
def folder(tmp_path):
    for path in HERE.glob("[0-9][0-9]-*.md"):
        (tmp_path / path.name).symlink_to(path)
    for name, text in BLOCK.findall(PAGE):
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def test_the_lesson_of_the_page_is_listed_and_read(folder):
    assert [one["name"] for one in shelf(folder)][-1] == "first-words"
    told = lesson("first-words", folder)
    assert told["number"] == len(entries()) + 1
    assert [screen["id"] for screen in told["screens"]] == [
        "the-first-draft",
        "one-guess-is-not-enough",
    ]
    assert told["screens"][0]["stage"]["after"] and told["screens"][1]["stage"]["kind"] == "live"
    asked = [
        node["directive"]
        for screen in told["screens"]
        for node in screen["text"]
        if node.get("directive", {}).get("kind") == "predict"
    ]
    assert [one["number"] for one in asked] == [0, 1, 2] and asked[1]["value"] == 0
    assert set(told["symbols"]) == {"α", "E", "k"} and told["examples"] == ["story-chain"]


def test_the_page_names_every_directive_moment_and_judge():
    for word in (*KINDS, *MOMENTS, *JUDGES):
        assert f"`{word}`" in PAGE or f'"{word}"' in PAGE, word
    for readings in JUDGES.values():
        assert all(f"`{reading}`" in PAGE for reading in readings)
