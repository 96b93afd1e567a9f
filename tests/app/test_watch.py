"""Watch: a run from the first click to its end, in a real browser."""

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from app.menu import drafter_menu, rule_menu
from presets import presets
from tests.app.visitor import MOVING, PROMPT

CHANGES = """() => {
  window.seen = new Map();
  const line = document.querySelector('#timeline');
  const note = () => {
    const step = line.getAttribute('aria-valuenow');
    if (!window.seen.has(step)) window.seen.set(step, performance.now());
  };
  new MutationObserver(note).observe(line, {attributes: true});
}"""


def lines(trace: str) -> list[dict]:
    return [json.loads(line) for line in trace.splitlines()]


def said(visitor) -> str:
    return visitor.page.inner_text("#watch-status [role=status]")


def comes_to_its_end(visitor) -> None:
    visitor.page.evaluate(CHANGES)
    assert visitor.run() == "done"
    run, *steps, summary = lines(visitor.trace())
    assert run["prompt"]["text"] == PROMPT
    assert summary["kind"] == "summary"
    assert summary["steps"] == len(steps) == visitor.steps
    tokens = [token for step in steps for token in step["output"]["tokens"]]
    assert visitor.page.locator("#text [data-index]").count() == len(tokens)
    # every step was on the screen, however fast they came
    seen = visitor.page.evaluate("[...window.seen.keys()].map(Number)")
    assert set(range(1, len(steps) + 1)) <= set(seen)
    tokens, steps = summary["new_tokens"], summary["steps"]
    passes = summary["target_calls"]
    told = f"Done: {tokens} tokens in {steps} steps, {passes} passes of the target."
    assert said(visitor).startswith(told)
    visitor.page.wait_for_selector("#watch-figures .js-plotly-plot")


def press_at(visitor, button: str, step: int) -> None:
    """Press a button as soon as ``step`` steps have come, because a run is soon over."""
    visitor.page.evaluate(
        """([id, step]) => {
          const line = document.querySelector('#timeline'), button = document.getElementById(id);
          const look = (_, watcher) => {
            const come = Number(line.getAttribute('aria-valuemax'));
            if (come < step || come > step + 60 || button.disabled) return;
            watcher.disconnect();
            button.click();
          };
          new MutationObserver(look).observe(line, {attributes: true});
        }""",
        [button, step],
    )


@pytest.mark.journey
def test_a_run_comes_to_its_end_another_is_paused_and_stopped(visit):
    visitor = visit(**MOVING)
    comes_to_its_end(visitor)
    visitor.pick("none")
    visitor.set_number("max_new_tokens", 200)
    visitor.click("step")
    visitor.wait_state("paused")
    assert len(lines(visitor.trace())) == 2, "Step begins a run and pauses after its first step"
    press_at(visitor, "pause", 3)
    visitor.click("pause")
    visitor.page.wait_for_function("DraftscopePage.trace('watch').split('\\n').length > 4")
    assert visitor.wait_state("paused", "done") == "paused"
    before = visitor.trace()
    visitor.page.wait_for_timeout(600)
    assert visitor.trace() == before, "a paused run stands still"
    assert visitor.page.inner_text("#pause").strip() == "Resume"
    count = len(lines(before)) - 1
    assert said(visitor) == f"Paused after step {count}: Resume goes on, Run begins anew."
    visitor.click("step")
    visitor.page.wait_for_function("n => DraftscopePage.trace('watch').length > n", arg=len(before))
    visitor.wait_state("paused")
    assert visitor.trace().startswith(before)
    assert len(lines(visitor.trace())) == len(lines(before)) + 1
    press_at(visitor, "stop", visitor.steps + 2)
    visitor.click("pause")
    visitor.wait_state("done")
    assert visitor.trace().startswith(before)
    summary = lines(visitor.trace())[-1]
    assert summary["stop"] == "cancelled"
    assert said(visitor) == f"Stopped after step {summary['steps']}."
    visitor.click("step")
    visitor.wait_state("paused")
    visitor.click("stop")
    visitor.wait_state("done")
    _, step, summary = lines(visitor.trace())
    assert (step["kind"], summary["stop"]) == ("step", "cancelled"), "a paused run is stopped, too"


def test_looking_back_asks_nothing_of_the_server(visit):
    visitor = visit(**MOVING)
    assert visitor.run() == "done"
    visitor.page.wait_for_selector("#watch-figures .js-plotly-plot")
    visitor.page.wait_for_timeout(500)
    asked = len(visitor.requests)
    timeline = visitor.page.locator("#timeline")
    timeline.press("Home")
    assert timeline.get_attribute("aria-valuenow") == "1"
    timeline.press("ArrowUp")
    box = timeline.bounding_box()
    visitor.page.mouse.move(box["x"] + 5, box["y"] + 20)
    visitor.page.mouse.down()
    visitor.page.mouse.move(box["x"] + box["width"] - 5, box["y"] + 20, steps=12)
    visitor.page.mouse.up()
    timeline.press("Home")
    visitor.page.locator("#tree g[data-node]").first.dispatch_event("click")
    visitor.page.wait_for_timeout(300)
    assert visitor.requests[asked:] == []
    assert visitor.page.inner_text("#inspector").strip()


def test_a_size_that_is_left_to_the_machine_reads_auto(visit):
    visitor = visit(**MOVING)
    visitor.pick("chain")
    length = visitor.page.locator("[data-option=length][placeholder=auto]")
    assert length.input_value() == ""
    for written, shown in (("3", "3"), ("0", ""), ("5", "5"), ("", "")):
        length.fill(written)
        length.press("Tab")
        assert length.input_value() == shown
    visitor.page.click("#copy-link")
    visitor.page.wait_for_function("location.search.includes('o.length=0')")
    assert visitor.run() == "done"
    assert lines(visitor.trace())[0]["drafter"]["options"]["length"] > 0


@pytest.mark.journey
def test_the_controls_know_the_temperature(visit):
    """That of an address, which is brought into range, an example's, and one that the visitor sets; the slider itself is
    folded away."""
    visitor = visit("/?drafter=chain&o.length=99&t=9", **MOVING)
    page, sampled = visitor.page, next(preset for preset in presets() if preset.temperature)
    told = "temperature 9 was set to 2, length 99 was set to 32"
    page.wait_for_function(f"document.querySelector('#watch-status').innerText.includes('{told}')")
    assert lines(visitor.trace())[-1]["kind"] == "summary", "it opens on a finished run"
    shown = "title => document.querySelector('.pg-judging').innerText.includes(`Here: ${title} `)"
    automatic = drafter_menu()[sampled.drafter]["automatic"]
    visitor.choose_example(sampled.title)
    page.wait_for_function(shown, arg=rule_menu()[automatic["warm"]]["title"])
    visitor.set_number("temperature", 0)
    page.wait_for_function(shown, arg=rule_menu()[automatic["cold"]]["title"])


def test_a_link_names_the_options_of_a_rule(visit):
    """The values are brought into the range that the rule declares."""
    rules = {key: rule["options"] for key, rule in rule_menu().items()}
    found = [
        (key, option)
        for key, options in rules.items()
        for option in options
        if option["type"] in ("int", "float")
    ]
    if not found:
        pytest.skip("no rule has a number to set")
    rule, option = found[0]
    page = visit(f"/?verifier={rule}&r.{option['name']}=1e9&t=0").page
    page.wait_for_function("rule => document.querySelector('#verifier').value === rule", arg=rule)
    page.click("#copy-link")
    page.wait_for_function("location.search.includes('r.')")
    asked = parse_qs(urlsplit(page.url).query)
    assert asked["verifier"] == [rule]
    assert float(asked[f"r.{option['name']}"][0]) == option["maximum"]
