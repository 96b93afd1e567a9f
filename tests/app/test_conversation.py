"""A conversation with the page's own target: turns, a system turn, and what ends them."""

import gradio as gr
import pytest

from app.own import Choice
from app.own import own as page_own
from app.own_models import OwnSection, offer, shown
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
    # the section is written anew when the answer has come
    page.wait_for_function("document.querySelectorAll('.pg-own-turn').length === 2")
    converse(page, on=False)
    assert visitor.run("The dog ran") == "done", visitor.alarm
    assert "messages" not in read_trace(visitor.trace()).run["prompt"]


@pytest.mark.parametrize("setting", ["off", "*"])
def test_own_models_are_offered_where_the_host_allows_some(setting, tabs, monkeypatch):
    allowed = allowed_models({"DRAFTSCOPE_OWN_MODELS": setting})
    monkeypatch.setattr(page_own, "allowed", allowed)
    with gr.Blocks():
        section = OwnSection()
    named = "Conversation" if setting == "off" else "Conversation and own models"
    assert section.fold.label == named
    props = {"value": shown(Choice())}
    page = bare_page(tabs.open(), {})
    page.evaluate(
        "([props, offer]) => DraftscopePage.ownModels({element: here, props, trigger() {}, watch() {}}, offer)",
        [props, offer()],
    )
    assert page.locator("#own-chat").is_visible()
    assert page.locator("#own-target").is_visible() == (setting != "off")
    tabs.close(page)
