"""The Learn tab: an address opens a lesson, a guess is compared with the reader's own run, and the browser keeps it."""

import json
import re

import pytest

from app.lessons import job, learn_lesson, learn_page, learn_trace
from engine.errors import UserError
from presets.lessons import shelf
from tests.app.test_page import PHONE
from tests.app.visitor import PROMPT
from tests.axe import violations

LIVE = "/?tab=learn&lesson=guess-and-check&screen=the-same-text-in-fewer-passes"


@pytest.mark.journey
def test_a_guess_is_held_against_the_reader_s_own_run_and_remembered(visit):
    visitor = visit(f"{LIVE}&__theme=dark", color_scheme="dark", **PHONE)
    page = visitor.page
    page.wait_for_selector("#learn-run")
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_label("Your guess").fill("2")
    page.get_by_role("button", name="That is my guess").click()
    page.locator("#learn textarea").fill(PROMPT)
    page.click("#learn-run")
    page.wait_for_selector(".ln-question[data-right]")
    said = page.inner_text(".ln-result")
    summary = json.loads(page.evaluate("DraftscopePage.trace('learn')").splitlines()[-1])
    assert f"it came out at {summary['mean_accepted']:.2f}".rstrip("0") in said
    page.get_by_role("link", name="All lessons").click()
    page.wait_for_selector(".ln-shelf")
    assert page.locator(".ln-card").count() == len(shelf())
    assert "1 question answered" in page.inner_text(".ln-shelf")
    page.go_back()
    page.wait_for_selector("#learn-run")
    page.locator("#learn textarea").fill(PROMPT)
    said = page.evaluate("""() => {
      document.querySelector('#learn-run').click(); document.querySelector('.pg-learn-back').click();
      return DraftscopePage.messageOf('learn'); }""")
    assert said == "It stops as soon as it begins.", "a lesson that is left stops its run"
    page.wait_for_function("DraftscopePage.stateOf('learn') === 'done'")
    last = json.loads(page.evaluate("DraftscopePage.trace('learn')").splitlines()[-1])
    assert last["kind"] == "summary"
    page.go_back()
    page.wait_for_selector("#learn-run")
    page.get_by_role("tab", name="Methods").click()
    page.get_by_role("tab", name="Learn").click()
    assert "lesson=guess-and-check" in page.url and "screen=the-same-text" in page.url
    visitor.go("/?tab=learn&lesson=quiz&seed=5")
    page.wait_for_selector(".ln-quiz-list > li")
    assert page.input_value("#ln-seed") == "5"
    assert page.locator(".ln-quiz-list > li").count() == 12
    assert violations(page) == []
    page.get_by_role("link", name="All lessons").click()
    page.get_by_role("link", name="Guess and check").click()
    page.get_by_role("button", name="Show it now").click()
    page.wait_for_selector(".ln-stage g[data-node]")
    assert "lesson=guess-and-check" in page.url
    page.get_by_role("button", name="3: ").click()
    page.locator(".ln-reading").get_by_role("link").first.click()
    page.wait_for_selector("[data-method=chain]")


def test_what_a_stranger_asks_for_is_checked():
    assert "error" in learn_lesson("../../etc/passwd") and "error" in learn_page("x")
    assert learn_trace("../presets") == learn_trace([]) == "" and learn_lesson({"a": 1}).keys() == {
        "error"
    }
    for wish in ({}, {"example": []}, {"example": "story-chain", "options": {"length": "x"}}):
        with pytest.raises(UserError):
            job(wish)
    with pytest.raises(UserError):
        job({"example": "story-chain", "options": {"nonsense": 1}})


def test_a_lesson_is_saved_with_its_runs():
    page = learn_page("guess-and-check")["page"]
    runs = json.loads(re.search(r'<script id="runs"[^>]*>(.*?)</script>', page)[1])
    assert runs == {name: learn_trace(name) for name in ("arithmetic-chain", "story-chain")}
