"""A conversation with the page's own target: turns, a system turn, and what ends them."""

from types import SimpleNamespace

import gradio as gr
import pytest

from app.own import own as page_own
from app.own_models import OwnSection, _set, offer, shown
from app.settings import allowed_models
from engine.trace import read_trace
from tests.app.bare import bare_page

TOO_LONG = "A system turn has at most 1,000 characters."


def open_section(page) -> None:
    page.click("#change")
    page.click("#own > button")
    page.wait_for_selector("#own-chat")


def converse(page, on: bool = True) -> None:
    page.set_checked("#own-chat", on)
    state = "visible" if on else "hidden"
    page.wait_for_selector("#own-system", state=state)


def write_system(page, text: str) -> None:
    page.fill("#own-system", text)
    page.locator("#own-system").blur()


@pytest.mark.journey
def test_the_pages_target_answers_turn_by_turn(visit):
    visitor = visit("/?n=40&drafter=prompt_lookup")
    page = visitor.page
    open_section(page)
    assert not page.locator("#own-system").is_visible(), "only in a conversation"
    converse(page)
    for turn, said in enumerate(["What is 37 + 45?", "Tell a story about a fox."], start=1):
        assert visitor.run(said) == "done", visitor.alarm
        trace = read_trace(visitor.trace())
        asked = trace.run["prompt"]["messages"]
        assert len(asked) == 2 * turn - 1 and asked[-1]["content"] == said
        assert trace.run["prompt"]["text"].endswith(f"<|user|>{said}<|end|><|assistant|>")
        page.wait_for_function(f"document.querySelectorAll('.pg-own-turn').length === {2 * turn}")
        answer = page.locator(".pg-own-assistant span").last.text_content()
        assert answer and "<|" not in answer and trace.summary["text"].startswith(answer)
    page.evaluate("document.querySelector('#own-system').removeAttribute('maxlength')")
    write_system(page, "x" * 1001)
    page.wait_for_function("document.querySelector('#own-models [role=alert]').textContent")
    assert page.inner_text("#own-models [role=alert]") == TOO_LONG
    write_system(page, "Answer in one sentence.")
    page.wait_for_function("!document.querySelectorAll('.pg-own-turn').length")
    assert visitor.run("Tell me about a dog.") == "done", visitor.alarm
    asked = read_trace(visitor.trace()).run["prompt"]["messages"]
    assert [turn["role"] for turn in asked] == ["system", "user"], "a new conversation"
    converse(page, on=False)  # while the section may still be written anew, with the answer
    assert visitor.run("The dog ran") == "done", visitor.alarm
    assert "messages" not in read_trace(visitor.trace()).run["prompt"]


SECTION = """([value, offer]) => {
  const props = window.props = { value };
  window.asked = [];
  window.come = (value) => { props.value = value; window.hear(); };
  DraftscopePage.ownModels({ element: here, props, trigger: (...told) => asked.push(told), watch: (_, hear) => { window.hear = hear; } },
    offer);
}"""


def own_section(tabs):
    """Return a page with the section alone. In it, ``come`` brings a value from the server, and ``asked`` holds the
    events that the section has sent."""
    page = bare_page(tabs.open(), {"chat": []})
    page.evaluate(SECTION, [shown("somebody"), offer()])
    return page


def test_a_value_from_before_a_click_does_not_undo_the_click(tabs):
    page, session = own_section(tabs), SimpleNamespace(session_hash="somebody")
    early, late = (shown("somebody") for _ in range(2))
    page.check("#own-chat")
    page.evaluate("come", early)  # made before the click, came after it
    assert page.is_checked("#own-chat")
    page.fill("#own-stop", "x")
    page.locator("#own-stop").blur()
    assert page.evaluate("asked.length") == 1, "gradio drops an event that another one is before"
    for _ in range(2):
        name, wish = page.evaluate("asked.at(-1)")
        assert (name, wish["chat"]) == ("adjust", True)
        page.evaluate("come", _set(session, SimpleNamespace(_data=wish)))
        page.evaluate("come", late)  # made before the click, too
        page.evaluate(
            "new Promise((done) => { DraftscopePage.answered('own-models'); setTimeout(done); })"
        )
        assert page.is_checked("#own-chat")
    assert page.evaluate("asked.length") == 2 and wish["stop"] == ["x"]
    assert page.is_visible("#own-system") and page.evaluate("JSON.parse(props.value).chat")
    page_own.leave("somebody")
    tabs.close(page)


@pytest.mark.parametrize("setting", ["off", "*"])
def test_own_models_are_offered_where_the_host_allows_some(setting, tabs, monkeypatch):
    allowed = allowed_models({"DRAFTSCOPE_OWN_MODELS": setting})
    monkeypatch.setattr(page_own, "allowed", allowed)
    with gr.Blocks():
        section = OwnSection()
    named = "Conversation" if setting == "off" else "Conversation and own models"
    assert section.fold.label == named
    page = own_section(tabs)
    assert page.locator("#own-chat").is_visible()
    assert page.locator("#own-target").is_visible() == (setting != "off")
    tabs.close(page)
