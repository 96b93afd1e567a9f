"""Every word explains itself in one line: on hover, on focus, and to a screen reader."""

import json

import pytest

from tests.viz.builder import Toy

DESCRIBED = """() => [...document.querySelectorAll('[aria-describedby]')].map((element) => {
  const line = document.getElementById(element.getAttribute('aria-describedby'));
  return [element.textContent, line ? line.textContent : ''];
})"""


def test_every_word_has_its_line(replay):
    page = replay(Toy(steps=6).ndjson())
    page.evaluate("view.goto(3)")
    lines = dict(page.evaluate(DESCRIBED))
    words = {"rule", "temperature", "draft", "verify", "judge", "commit", "p", "depth"}
    assert words | {"Tree", "Icicle", "tokens a step"} <= set(lines)
    assert all(lines.values()), lines


def test_the_coin_and_the_probability_of_keeping_explain_themselves(replay):
    page = replay(Toy(steps=12, seed=2).ndjson())
    page.evaluate(
        """() => { const at = view.model.steps.findIndex((s) => s.judgements.some((j) => j.coin !== null));
          view.goto(at); view.select(view.model.steps[at].judgements.find((j) => j.coin !== null).node); }"""
    )
    lines = dict(page.evaluate(DESCRIBED))
    assert lines["coin"] and lines["kept below"]


def test_the_headings_of_the_outcome_explain_themselves(script):
    page = script
    page.evaluate(
        """(text) => { const host = document.createElement('div'); document.body.append(host);
          Draftscope.mountCompare(host, {autoplay: false}).feed({one: text, two: text}); }""",
        Toy().ndjson(),
    )
    lines = dict(page.evaluate(DESCRIBED))
    headings = page.locator(".ds-outcome thead th").all_text_contents()
    assert len(headings) == 7
    assert all(lines[heading] for heading in headings)


@pytest.mark.parametrize("way", ["hover", "focus"])
def test_the_line_is_shown_and_escape_hides_it(replay, script, way):
    page = replay(Toy().ndjson())
    word, tip = page.locator(".ds-legend .ds-term").first, page.locator(".ds-tip")
    getattr(word, way)()
    assert tip.is_visible()
    assert tip.inner_text() == script.evaluate("Draftscope.GLOSSARY.accepted")
    page.keyboard.press("Escape")
    assert tip.is_hidden()


def test_the_pointer_may_go_on_to_the_line(replay):
    page = replay(Toy().ndjson())
    page.hover(".ds-legend .ds-term")
    page.hover(".ds-tip")
    page.wait_for_timeout(300)
    assert page.locator(".ds-tip").is_visible()
    page.mouse.move(2, 2)
    page.locator(".ds-tip").wait_for(state="hidden")


def test_a_line_goes_with_its_word(replay):
    page = replay(Toy(steps=6).ndjson())
    page.evaluate("view.goto(1); view.select('final')")
    page.hover("#inspector .ds-term")
    assert page.locator(".ds-tip").is_visible()
    assert page.evaluate("(view.goto(4), document.querySelector('.ds-tip').hidden)")


def test_a_word_of_a_trace_is_never_taken_for_ours(replay):
    run, rest = Toy().ndjson().split("\n", 1)
    told = json.loads(run)
    told["drafter"]["family"] = "toString"
    page = replay(f"{json.dumps(told)}\n{rest}")
    assert page.locator(".ds-run-title strong button").count() == 0
