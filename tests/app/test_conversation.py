"""A conversation with the page's own target: turns, a system turn, and what ends them."""

import pytest

from engine.trace import read_trace
from tests.app.serving import serving
from tests.app.visitor import Visitor


@pytest.fixture(scope="module")
def host():
    with serving(DRAFTSCOPE_OWN_MODELS="off") as running:
        yield running


@pytest.fixture
def visitor(host, browser):
    found = Visitor(browser, host.url, "/?n=40&drafter=prompt_lookup", {})
    yield found
    found.leave()
    assert found.failures == [] and found.foreign == []


def open_section(page) -> None:
    page.click("#change")
    page.click("#own > button")
    page.wait_for_selector("#own-chat")


def converse(page, on: bool = True) -> None:
    page.set_checked("#own-chat", on)
    state = "visible" if on else "hidden"
    page.wait_for_selector("#own-system", state=state)


def test_the_pages_target_answers_turn_by_turn(visitor):
    page = visitor.page
    open_section(page)
    assert not page.locator("#own-target").is_visible(), "the host allows no own models"
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
    page.fill("#own-system", "Answer in one sentence.")
    page.locator("#own-system").blur()
    page.wait_for_function("!document.querySelectorAll('.pg-own-turn').length")
    assert visitor.run("Tell me about a dog.") == "done", visitor.alarm
    asked = read_trace(visitor.trace()).run["prompt"]["messages"]
    assert [turn["role"] for turn in asked] == ["system", "user"], "a new conversation"
    converse(page, on=False)
    assert visitor.run("The dog ran") == "done", visitor.alarm
    assert "messages" not in read_trace(visitor.trace()).run["prompt"]


def test_a_system_turn_that_is_too_long_is_told(visitor):
    page = visitor.page
    open_section(page)
    converse(page)
    page.evaluate("document.querySelector('#own-system').removeAttribute('maxlength')")
    page.fill("#own-system", "x" * 1001)
    page.locator("#own-system").blur()
    page.wait_for_function("document.querySelector('#own-models [role=alert]').textContent")
    told = page.inner_text("#own-models [role=alert]")
    assert told == "A system turn has at most 1,000 characters."
