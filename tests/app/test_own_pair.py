"""A stranger's pair through the page, end to end: two architectures, padded vocabularies, a chat template. It is watched, raced,
and what the host does not lend is told in one sentence."""

import json
import os

import pytest

from engine.trace import read_trace
from tests.app.visitor import written

LOADED = """() => !document.querySelector('#own-load').disabled &&
  (document.querySelector('#own-facts').textContent || document.querySelector('#own-models [role=alert]').textContent)"""


def load(visitor, target: str, draft: str) -> None:
    """Ask for this pair in the section; the last message of the alarm is cleared before."""
    page = visitor.page
    visitor.change()
    if not page.locator("#own-target").is_visible():
        page.click("#own > button")
        page.locator("#own-target").wait_for()
    page.locator("#own-models [role=alert]").evaluate("alarm => { alarm.textContent = ''; }")
    page.fill("#own-target", target)
    page.fill("#own-draft", draft)
    page.click("#own-load")


def refused(visitor, target: str, draft: str, told: str) -> None:
    """Ask for this pair, and wait until the alarm refuses it with these words, in one sentence."""
    load(visitor, target, draft)
    alarm = visitor.page.locator("#own-models [role=alert]")
    alarm.filter(has_text=told).wait_for()
    said = alarm.inner_text()
    assert "\n" not in said and os.sep + "root" not in said
    visitor.page.wait_for_function("!document.querySelector('#own-load').disabled")


@pytest.mark.journey
def test_a_strangers_pair_end_to_end(host, arrive):
    visitor = arrive(host, "/?n=12&drafter=chain&o.length=3")
    page = visitor.page
    for wish in ("/etc", "../../etc/passwd", "org/model", "<img src=x onerror=1>"):
        refused(visitor, wish, "", "This page does not open that model")
        assert not page.locator("#own-inspected").is_visible()
    load(visitor, *(f"{host.folder}/models/{name}" for name in ("stranger", "stranger-small")))
    page.wait_for_function(LOADED)
    page.locator("#own-facts").get_by_text("stranger-small drafts").wait_for()
    assert "stranger: " in page.inner_text("#own-facts")
    page.click("#own-inspected summary")
    assert "stranger-small is a causal language model" in page.inner_text("#own-inspected")
    assert page.is_checked("#own-chat")
    for turn, said in enumerate(["Hello dog", "And then?"], start=1):
        assert visitor.run(said) == "done", visitor.alarm
        trace = read_trace(visitor.trace())
        assert trace.run["target"]["name"] == "stranger"
        asked = trace.run["prompt"]["messages"]
        assert len(asked) == 2 * turn - 1 and asked[-1] == {"role": "user", "content": said}
        page.wait_for_function(f"document.querySelectorAll('.pg-own-turn').length === {2 * turn}")
        answer = page.locator(".pg-own-assistant span").last.text_content()
        assert trace.summary["text"].removeprefix(" ").startswith(answer)
    page.click("#own-fresh")
    page.wait_for_function("!document.querySelectorAll('.pg-own-turn').length")
    page.uncheck("#own-chat")
    page.wait_for_timeout(500)
    assert visitor.run("The dog ran") == "done"
    trace = read_trace(visitor.trace())
    assert trace.run["prompt"]["text"] == "The dog ran"
    stop = trace.summary["text"][4:7]
    written(page.locator("#own-stop"), stop.replace("\\", "\\\\").replace("\n", "\\n"))
    page.wait_for_timeout(500)
    assert visitor.run("The dog ran") == "done"
    ended = read_trace(visitor.trace()).summary
    assert ended["stop"] == "stop" and ended["text"] in trace.summary["text"]
    visitor.open_compare()
    page.click("#race")
    page.wait_for_function(  # the finished race may come first
        "() => document.querySelector('#compare-status [role=alert]').textContent"
        " || (DraftscopePage.stateOf('compare') === 'done' && DraftscopePage.trace('compare').split('\\n')[0].includes('stranger'))"
    )
    alarm = page.inner_text("#compare-status [role=alert]")
    assert alarm == "", "lanes without their parts gave way"
    lines = map(json.loads, page.evaluate("DraftscopePage.trace('compare')").splitlines())
    runs = [line for line in lines if line["kind"] == "run"]
    assert len(runs) >= 2 and {run["target"]["name"] for run in runs} == {"stranger"}
    page.get_by_role("tab", name="Watch").click()
    page.click("#own-unload")
    page.wait_for_function("!document.querySelector('#own-facts').offsetParent")
    assert visitor.run("The dog ran") == "done"
    assert read_trace(visitor.trace()).run["target"]["name"] == "target"
