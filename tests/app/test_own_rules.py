"""What the browser makes of a visitor's conversation and own models, called without a server."""

import json

import pytest

from app.menu import offer, plain_pair
from app.own import Choice
from tests.app.bare import bare_page

USER, ANSWER, MORE = (
    {"role": role, "content": text}
    for role, text in (("user", "Hello"), ("assistant", "Hi."), ("user", "And then?"))
)
TALKS = {
    "not yet a word": ("", []),
    "one turn": ("", [USER, ANSWER]),
    "two turns": ("", [USER, ANSWER, MORE, ANSWER]),
    "behind a system turn": ("Be short.", [USER, ANSWER]),
    "only a system turn": ("Be short.", []),
}
PAIR = json.dumps(plain_pair("none"))
NOW = {"pair": PAIR, "temperature": 0, "top_k": 0, "top_p": 1, "seed": 0, "max_new_tokens": 9}
RUN = {
    "kind": "run",
    "target": {"name": "target"},
    "drafter": {"key": "none", "family": "none", "options": {}},
    "verifier": {"key": "greedy", "lossless": True, "options": {}},
    "sampling": {"temperature": 0, "top_k": 0, "top_p": 1, "seed": 0},
}
MOUNT = """(value) => {
  here.replaceChildren();
  window.told = [];
  const props = {value};
  DraftscopePage.pair({element: here, props, trigger: (name) => told.push([name, JSON.parse(props.value)]), watch() {}});
}"""
PAIRED = {"target": "mine", "draft": ""}


@pytest.fixture(scope="module")
def page(browser):
    page = bare_page(browser.new_page(), offer())
    page.set_default_timeout(20_000)
    yield page
    page.close()


@pytest.fixture(autouse=True)
def alone(page):
    yield
    page.evaluate("DraftscopePage.setOwnPair({loaded: null, missing: {}})")
    set_talk(page, False)


def set_talk(page, chat: bool, system: str = "", turns=(), stop=()) -> None:
    page.evaluate(
        "(talk) => DraftscopePage.setConversation(talk)",
        {"chat": chat, "system": system, "turns": list(turns), "stop": list(stop)},
    )


def differences(page, prompt: str, asked: list | None, own: str | None = None, **run) -> list[str]:
    text = "".join(turn["content"] for turn in asked) if asked else "Hello"
    told = {**RUN, **run, "prompt": {"text": text, **({"messages": asked} if asked else {})}}
    return page.evaluate(
        "([now, run, own]) => DraftscopePage.differences('watch', now, [{run}], null, own)",
        [{**NOW, "prompt": prompt}, told, own],
    )


@pytest.mark.parametrize("talk", TALKS)
@pytest.mark.parametrize("prompt", ["Hello", "And then?", "Hi."])
def test_browser_and_server_agree_on_the_turns_that_a_run_answers(page, talk, prompt):
    system, turns = TALKS[talk]
    set_talk(page, True, system, turns)
    asked = page.evaluate("(prompt) => DraftscopePage.asking('watch', prompt)", prompt)
    assert asked == Choice(system=system, turns=list(turns)).asking(prompt)
    assert page.evaluate("DraftscopePage.asking('compare', 'x')") is None


def test_a_turn_that_was_answered_is_the_run_on_the_screen(page):
    set_talk(page, True, "", [USER, ANSWER])
    assert differences(page, "Hello", [USER]) == []
    assert differences(page, "And then?", [USER]) == ["the prompt"]
    set_talk(page, True, "", [])
    assert differences(page, "Hello", [USER]) == [], "its answer has not been noted yet"
    set_talk(page, True, "Be short.", [])
    assert differences(page, "Hello", [USER]) == ["the conversation"]
    set_talk(page, True, "", [USER, ANSWER, MORE, ANSWER])
    assert differences(page, "And then?", [USER, ANSWER, MORE]) == []
    assert differences(page, "Hello", None) == ["the prompt"], "a run outside the conversation"
    set_talk(page, False)
    assert differences(page, "Hello", None) == []
    assert differences(page, "Hello", [MORE]) == ["the prompt"]


def test_another_target_and_other_ends_are_another_run(page):
    assert differences(page, "Hello", None, own="") == []
    set_talk(page, False, stop=["."])
    assert differences(page, "Hello", None, own="") == ["what ends the text"]
    assert differences(page, "Hello", None, own="", stop_strings=["."]) == []
    assert differences(page, "Hello", None) == [], "a run that was not made here"
    page.evaluate(
        "(loaded) => DraftscopePage.setOwnPair({loaded, missing: {}})", {"target": "m", "draft": ""}
    )
    set_talk(page, False)
    assert differences(page, "Hello", None) == ["the target"]
    assert differences(page, "Hello", None, own="") == ["the target"]
    assert differences(page, "Hello", None, target={"name": "m"}) == []
    now = page.evaluate("DraftscopePage.ownPair()")
    assert differences(page, "Hello", None, own=now, target={"name": "m"}) == []


def test_a_drafter_without_its_part_beside_an_own_target_cannot_be_picked(page):
    page.evaluate(MOUNT, json.dumps(plain_pair("chain", {"draft": "draft-3m"})))
    assert page.locator("[data-option=draft]").count() == 1
    why = "needs a draft model, which is not loaded"
    page.evaluate(
        "([loaded, missing]) => DraftscopePage.setOwnPair({loaded, missing})",
        [PAIRED, {"chain": why}],
    )
    assert page.locator("[data-option=draft]").count() == 0, "the page's own drafts"
    (edit,) = page.evaluate("told")
    assert edit[0] == "edited" and "draft" not in edit[1]["options"]
    assert why in page.locator(".pg-missing").inner_text()
    page.locator("[role=combobox]").click()
    barred = page.locator("[role=option][aria-disabled=true]")
    assert [one.get_attribute("data-key") for one in barred.all()] == ["chain"]
    page.keyboard.press("Escape")
    page.evaluate("DraftscopePage.setOwnPair({loaded: null, missing: {}})")
    assert page.locator("[data-option=draft]").count() == 1
    assert page.locator(".pg-missing").count() == 0
