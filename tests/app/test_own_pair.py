"""A stranger's pair through the page, end to end: two architectures, padded vocabularies, a chat template."""

import json
import os

import pytest

from engine.trace import read_trace
from tests.app.visitor import Visitor


@pytest.fixture
def pair(host):
    return [f"{host.folder}/models/{name}" for name in ("stranger", "stranger-small")]


@pytest.fixture
def visitor(host, tabs):
    found = Visitor(tabs, host.url, "/?n=12&drafter=chain&o.length=3", {})
    yield found
    found.leave()
    assert found.failures == [] and found.foreign == []


def load(visitor, target: str, draft: str) -> None:
    page = visitor.page
    visitor.change()
    if not page.locator("#own-target").is_visible():
        page.click("#own > button")
    page.fill("#own-target", target)
    page.fill("#own-draft", draft)
    page.click("#own-load")
    page.wait_for_function(
        "() => !document.querySelector('#own-load').disabled && (document.querySelector('#own-facts').textContent"
        " || document.querySelector('#own-models [role=alert]').textContent)"
    )


def test_a_strangers_pair_end_to_end(visitor, pair):
    load(visitor, *pair)
    page = visitor.page
    assert "stranger: " in page.inner_text("#own-facts")
    assert "stranger-small drafts" in page.inner_text("#own-facts")
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
    page.fill("#own-stop", stop.replace("\\", "\\\\").replace("\n", "\\n"))
    page.locator("#own-stop").blur()
    page.wait_for_timeout(500)
    assert visitor.run("The dog ran") == "done"
    ended = read_trace(visitor.trace()).summary
    assert ended["stop"] == "stop" and ended["text"] in trace.summary["text"]
    page.click("#own-unload")
    page.wait_for_function("!document.querySelector('#own-facts').offsetParent")
    assert visitor.run("The dog ran") == "done"
    assert read_trace(visitor.trace()).run["target"]["name"] == "target"


def test_compare_races_on_the_pair(visitor, pair):
    load(visitor, *pair)
    visitor.open_compare()
    page = visitor.page
    page.evaluate("window.shown = DraftscopePage.trace('compare')")
    page.click("#race")
    page.wait_for_function(
        "() => document.querySelector('#compare-status [role=alert]').textContent"
        " || (DraftscopePage.trace('compare') !== window.shown && DraftscopePage.stateOf('compare') === 'done')"
    )
    assert page.inner_text("#compare-status [role=alert]") == "", (
        "lanes without their parts gave way"
    )
    lines = [
        json.loads(line) for line in page.evaluate("DraftscopePage.trace('compare')").splitlines()
    ]
    runs = [line for line in lines if line["kind"] == "run"]
    assert len(runs) >= 2 and {run["target"]["name"] for run in runs} == {"stranger"}


@pytest.mark.parametrize("wish", ["/etc", "../../etc/passwd", "org/model", "<img src=x onerror=1>"])
def test_what_is_not_on_the_hosts_list_is_told_in_one_sentence(visitor, wish):
    load(visitor, wish, "")
    told = visitor.page.inner_text("#own-models [role=alert]")
    assert told.startswith("This page does not open that model")
    assert not visitor.page.locator("#own-inspected").is_visible()
    assert os.sep + "root" not in told
