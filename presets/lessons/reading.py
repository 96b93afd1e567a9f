"""Reads a lesson's file as plain data: screens of text with at most one instrument each, and notes for teachers."""

import re
import tomllib
from functools import cache
from pathlib import Path

from markdown_it.tree import SyntaxTreeNode

from engine.errors import UserError, unknown
from presets import cards
from presets.conditions import Missing
from presets.lessons import directives
from presets.lessons.formulas import symbols_in
from presets.lessons.front import read_front
from presets.lessons.text import blocks, of_block

TEACHER = "Teacher’s notes"
SYMBOLS = Path(__file__).parent / "symbols.toml"
FEWEST_QUESTIONS = 3


def read_lesson(path: Path) -> dict:
    """Return {"screens", "teacher", "goals", "reading", "symbols", "examples", "races", "left_out"} of a lesson.

    teacher: the notes for teachers, as nodes. reading: the cards for further reading. symbols: symbol in a formula ->
    its meaning. examples, races: names of the runs and races on the screens. left_out: a sentence for each screen
    or card that is left out because an example, a race or a method that it shows is not here. Raises UserError, one sentence that
    names the file and the screen.
    """
    front, text = read_front(path)
    place, screens, teacher = f"The lesson {path.name}", [], []
    left_out = [
        f"{place}: {unknown('method', key, cards())}" for key in front.methods if key not in cards()
    ]
    for title, content in _sections(place, text):
        try:
            if title == TEACHER:
                teacher = [node for block in content for node in of_block(block)]
            else:
                screens.append(_screen(title, content))
        except Missing as error:
            left_out.append(f"{place}, “{title}”: {error}")
        except UserError as error:
            raise UserError(f"{place}, “{title}”: {error}") from None
    questions = [node for screen in screens for node in screen["text"] if _predicts(node)]
    if len(questions) < FEWEST_QUESTIONS and not left_out:
        raise UserError(
            f"{place} asks {len(questions)} questions; it takes {FEWEST_QUESTIONS} at least."
        )
    if not teacher and not left_out:
        raise UserError(f"{place} has no section “{TEACHER}”.")
    for number, node in enumerate(questions):
        node["directive"]["number"] = number
    return {
        "screens": screens,
        "teacher": teacher,
        "goals": list(front.goals),
        "reading": [_card(key) for key in front.methods if key in cards()],
        "symbols": _explained(place, symbols_in(screens) | symbols_in(teacher)),
        **_needed(screens),
        "left_out": left_out,
    }


def _sections(place: str, text: str) -> list[tuple[str, list[SyntaxTreeNode]]]:
    """Return (title, blocks) of each section, which begins with a heading of the second level. Raises UserError."""
    sections: list[tuple[str, list[SyntaxTreeNode]]] = []
    for block in blocks(text):
        if block.type == "heading" and block.tag == "h2":
            sections.append((titled(block), []))
        elif sections:
            sections[-1][1].append(block)
        else:
            raise UserError(f"{place} must begin with a heading, “## …”, after its head.")
    return sections


def titled(heading: SyntaxTreeNode) -> str:
    return heading.children[0].content.replace("'", "’")


def _screen(title: str, content: list[SyntaxTreeNode]) -> dict:
    """Return a screen: its text with questions and claims, and at most one instrument. Raises UserError."""
    text: list = []
    stage = None
    for block in content:
        if block.type != "fence" or not block.info:
            text += of_block(block)
            continue
        directive = directives.read(block.info, block.content)
        if directive["kind"] not in directives.INSTRUMENTS:
            text.append({"directive": directive})
        elif stage is not None:
            raise UserError("a screen has one instrument.")
        else:
            stage = directive
    judges = {node["directive"].get("judge") for node in text if _predicts(node)}
    if "run" in judges and (stage or {}).get("kind") != "live":
        raise UserError("a question is judged by a run, but there is no live run on the screen.")
    if "instrument" in judges and (stage or {}).get("kind") not in directives.SETTINGS:
        raise UserError("a question is judged by an instrument that is not on the screen.")
    for node in text:
        if _predicts(node):
            directives.check_setting(stage, node["directive"].get("with", {}))
    if (stage or {}).get("after") and not any(_predicts(node) for node in text):
        raise UserError("an instrument waits for a question that is not on the screen.")
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    return {"id": slug, "title": title, "text": text, "stage": stage}


def _predicts(node: object) -> bool:
    return isinstance(node, dict) and node.get("directive", {}).get("kind") == "predict"


def _needed(screens: list[dict]) -> dict:
    """Return {"examples", "races"}: the names of the runs and races that the screens show."""
    stages = [screen["stage"] for screen in screens if screen["stage"]]
    kinds_by_name = {"examples": ("trace", "live"), "races": ("race",)}
    return {
        what: sorted({stage["example"] for stage in stages if stage["kind"] in kinds})
        for what, kinds in kinds_by_name.items()
    }


def _card(key: str) -> dict:
    card = cards()[key]
    return {"key": key, "title": card.title, "paper": card.paper, "example": card.example}


def _explained(place: str, used: set[str]) -> dict[str, str]:
    """Return symbol -> meaning, for the symbols in the lesson's formulas. Raises UserError for one without a
    meaning."""
    for symbol in sorted(used - known_symbols().keys()):
        raise UserError(f"{place}: no line of symbols.toml explains {symbol!r}.")
    return {symbol: known_symbols()[symbol] for symbol in sorted(used)}


@cache
def known_symbols() -> dict[str, str]:
    return tomllib.loads(SYMBOLS.read_text("utf-8"))
