"""A lesson as a file, which works from a disk."""

import copy
import json

import pytest

from tests.axe import violations, violations_in_both_schemes
from tests.viz.builder import Toy
from tests.viz.conftest import SMALLEST, until
from viz.lesson import page as lesson_page

CLAIM = {"kind": "claim", "text": ["It is so."], "example": "toy"}
CLAIM["holds"] = [{"condition": "steps > 1", "true": True, "is": "2"}]
GUESS = {"kind": "predict", "number": 0, "judge": "instrument", "answer": "share", "near": 0.05}
GUESS |= {"ask": ["How often?"], "then": ["So often."]}
GUESS |= {"slider": {"low": 0, "high": 1, "step": 0.01}}
RULE = {"kind": "rule", "words": ["a", "b"], "p": [0.3, 0.7], "q": [0.9, 0.1]}
RULE |= {"rules": ["exact", "always"], "caption": ["Bars of what came."], "after": True}
FORMULA = {"math": "math", "a": {"display": "block"}, "c": [{"math": "mi", "c": ["p"]}]}
TEXT = [
    {"t": "p", "c": ["<img src=x onerror=alert(1)>", {"t": "script", "c": ["alert(2)"]}]},
    {"formula": FORMULA},
    {"directive": CLAIM},
    {"directive": GUESS},
]
END = {"id": "two", "title": "Two", "text": [{"t": "p", "c": ["The end."]}], "stage": None}
LESSON = {"name": "toy", "number": 1, "title": "Toy", "question": "What?", "minutes": 5}
LESSON |= {"screens": [{"id": "one", "title": "One", "text": TEXT, "stage": RULE}, END]}
LESSON |= {"teacher": [{"t": "p", "c": ["Ask."]}], "goals": ["See."], "reading": []}
LESSON |= {"symbols": {"p": "The target’s probability."}, "examples": [], "races": []}
TOY = {"lesson": LESSON}


@pytest.fixture
def toy(watched, tmp_path):
    """Return toy(lesson, anchor, links, runs), which opens the page of a lesson from its file."""

    def open_(lesson=TOY, anchor="", links=None, runs=None):
        file = tmp_path / "toy.html"
        file.write_text(lesson_page(lesson, runs or {}, "Toy", links), "utf-8")
        page = watched(reduced_motion="reduce").page
        page.goto(file.as_uri() + anchor)
        return page

    return open_


def test_a_lesson_s_file_works_from_a_disk_by_keyboard(toy):
    """Its text is text, a guess waits for the instrument, the symbol explains itself, axe finds nothing."""
    page = toy()
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.get_by_text("<img src=x onerror=alert(1)>").is_visible()
    page.locator("mi.ln-symbol").first.focus()
    assert page.locator(".ds-tip").inner_text() == "The target’s probability."
    toss = page.get_by_role("button", name="10,000 times")
    assert not page.get_by_text("It is so.").is_visible() and toss.count() == 0, "first the guess"
    assert not page.get_by_text("Bars of what came.").is_visible(), "a caption may tell"
    page.get_by_label("Your guess").focus()
    for _ in range(20):
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    until(page, "document.querySelector('.ln-answer').textContent.includes('Noted')")
    assert page.get_by_text("It is so.").is_visible()
    toss.focus()
    page.keyboard.press("Enter")
    told = "document.querySelector('.ln-answer').textContent"
    until(page, f"/^(Exactly|Close enough, within [^:]+): /.test({told})")
    assert page.get_by_text("Bars of what came.").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert violations_in_both_schemes(page) == []
    kept = json.loads(page.evaluate("localStorage.getItem('draftscope-learn')"))
    assert kept == {"toy": {"0": {"right": True}}}
    page.get_by_role("button", name="Next").focus()
    page.keyboard.press("Enter")
    until(page, "document.activeElement.textContent === 'Two'")
    assert page.evaluate("location.hash") == "#screen=two"


def test_the_key_of_the_areas_waits_for_the_guess(toy):
    """The share that both laws cover answers the question."""
    lesson = copy.deepcopy(TOY)
    lesson["lesson"]["screens"][0]["stage"]["after"] = False
    page = toy(lesson)
    key = page.locator(".ln-areas .ln-key")
    assert "have in common" in key.inner_text() and "0." not in key.inner_text()
    page.locator(".ln-guess").fill("0.5")
    page.get_by_role("button", name="That is my guess").click()
    assert "have in common, 0.40" in key.inner_text()


def test_a_lecture_hall_has_a_named_way_out_and_its_question_keeps_to_its_column(toy):
    page = toy()
    page.set_viewport_size({"width": 1366, "height": 768})
    page.get_by_role("button", name="Full screen", exact=True).click()
    out = page.get_by_role("button", name="Leave full screen")
    out.wait_for()
    wider = page.evaluate("""() => { const right = (one) => one.getBoundingClientRect().right, column = document.querySelector('.ln-text');
      return [...column.querySelectorAll('.ln-question, .ln-question *')].filter((one) => right(one) > right(column) + 1).length; }""")
    assert wider == 0
    out.click()
    page.get_by_role("button", name="Full screen", exact=True).wait_for()
    assert not page.locator(".ln[data-hall]").count()


def test_the_tree_of_a_lesson_is_legible_however_large(toy):
    lesson = copy.deepcopy(TOY)
    stage = {"kind": "trace", "example": "tree", "step": 1, "node": None, "parts": ["tree"]}
    lesson["lesson"]["screens"][1]["stage"] = stage
    run = Toy(steps=3, budget=16, depth=16, style="chain").ndjson()
    page = toy(lesson, "#screen=two", runs={"tree": run})
    page.wait_for_selector(".ln-stage .ds-tree .ds-label")
    assert page.evaluate(SMALLEST) >= 12


def test_a_lesson_shows_the_figure_of_a_method(toy):
    lesson = copy.deepcopy(TOY)
    rows = [["masked", 0.62], ["after one text", 0.5]]
    shown = {"kind": "table", "title": "Laws", "columns": ["law", "apart"], "rows": rows}
    stage = {"kind": "figure", "method": "toy", "exhibits": [shown]}
    lesson["lesson"]["screens"][1]["stage"] = stage
    page = toy(lesson, "#screen=two")
    figure = page.locator(".ln-stage[data-kind=figure] figure")
    assert figure.locator("figcaption").inner_text() == "Laws"
    assert "after one text" in figure.inner_text()


def test_a_figure_alone_has_a_link_and_the_way_back(toy):
    page = toy()
    address = page.url
    link = page.get_by_role("link", name="Link to this figure").get_attribute("href")
    page.goto(address + link)
    page.reload()
    page.get_by_role("button", name="Show the lesson").wait_for()
    assert page.get_by_role("button", name="10,000 times").is_visible()
    assert not page.get_by_text("How often?").is_visible()
    width = page.evaluate("document.querySelector('.ln-stage').getBoundingClientRect().width")
    assert width > 0.8 * page.viewport_size["width"]
    assert violations(page) == []
    page.keyboard.press("Escape")
    assert page.get_by_text("How often?").is_visible()
    assert page.evaluate("location.hash") == "#screen=one"


def test_the_last_screen_leads_to_the_next_lesson(toy):
    onward = {"lesson": {**TOY["lesson"], "next": "two"}}
    page = toy(onward, links={"lesson:two": "two.html"})
    link = page.get_by_role("link", name="Next lesson")
    assert not link.is_visible()
    page.get_by_role("button", name="Next", exact=True).click()
    assert link.is_visible() and link.get_attribute("href") == "two.html"
