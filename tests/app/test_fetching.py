"""The control Model: a chat model that is fetched from the page, opened in the background, and talked to."""

import time

import pytest

from app.fetching import Fetching
from engine.trace import read_trace
from presets import fetched
from tests.app.tiny_family import FAMILY, families_in
from tests.app.visitor import covered, wait_address

TITLE = "A real chat model"


def choose(page, title: str) -> None:
    page.locator("#models").get_by_label(title, exact=True).check()


@pytest.mark.journey
def test_it_is_fetched_and_answers(host, arrive):
    visitor = arrive(host, "/?n=12&drafter=prompt_lookup")
    page, note = visitor.page, visitor.page.locator("#models-note")
    visitor.change()
    choose(page, TITLE)
    page.wait_for_selector("#own-system")  # a conversation
    page.locator("#own-chat").wait_for(state="hidden")  # it always is one
    button = note.locator("[data-model=fetch]")
    button.wait_for()
    assert "Tiny-Chat" in button.inner_text() and " MB)" in button.inner_text(), "told beforehand"
    assert "of memory" in note.inner_text() and "Apache-2.0" in note.inner_text()
    assert visitor.run("the thin the") == "error"
    assert "not on this machine yet" in visitor.alarm, "never without being asked"
    page.locator("#drafter").get_by_role("combobox").click()
    lacking = page.locator("#drafter [role=option][data-key=medusa]")
    assert lacking.get_attribute("aria-disabled") == "true"
    why = f"needs a set of Medusa heads, which this page does not have for “{TITLE}”"
    assert why in lacking.inner_text()
    page.keyboard.press("Escape")
    visitor.change()
    button.click()
    button.wait_for(state="hidden")
    page.wait_for_function(
        "!document.querySelector('#models-note').textContent.includes('not on this machine')"
    )
    for turn, said in enumerate(["the thin the", "in 12"], start=1):
        assert visitor.run(said) == "done", visitor.alarm
        trace = read_trace(visitor.trace())
        asked = trace.run["prompt"]["messages"]
        assert trace.run["family"] == FAMILY and trace.run["target"]["name"] == "Tiny-Chat"
        assert len(asked) == 2 * turn - 1 and asked[-1] == {"role": "user", "content": said}
        assert trace.run["prompt"]["text"].endswith(
            f"<|im_start|>user\n{said}<|im_end|>\n<|im_start|>assistant\n"
        )
        page.wait_for_function(f"document.querySelectorAll('.pg-own-turn').length === {2 * turn}")
    assert page.locator(".pg-cover").count() == 0
    wait_address(page, models=FAMILY)
    choose(page, "Small, instant")
    covered(page, "the model")
    assert visitor.run("Once upon a time") == "done", visitor.alarm
    run = read_trace(visitor.trace()).run
    assert "family" not in run and "messages" not in run["prompt"]
    again = arrive(host, f"/?models={FAMILY}&prompt=the+tin&n=8&drafter=none")
    again.page.wait_for_selector(  # from the link
        f"#models input[value={FAMILY}]:checked", state="attached"
    )
    assert again.run() == "done", again.alarm
    asked = read_trace(again.trace()).run["prompt"]["messages"]
    assert asked == [{"role": "user", "content": "the tin"}], "another visitor's conversation"


def test_what_stands_in_its_way_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(fetched, "FAMILIES", families_in(tmp_path))
    monkeypatch.setenv("DRAFTSCOPE_CACHE", str(tmp_path / "cache"))
    fetched.sources.cache_clear()
    try:
        fetched.place_of(FAMILY).mkdir(parents=True)
        fetching = Fetching()
        assert fetching.told(FAMILY)["here"] is False
        fetching.fetch(FAMILY, "somebody")
        while (told := fetching.told(FAMILY))["task"]:
            time.sleep(0.1)
    finally:
        fetched.sources.cache_clear()
    assert told["problem"].startswith("Something else lies at") and told["here"] is False
