"""Watch: a run from the first click to its end, in a real browser."""

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from app.menu import drafter_menu, rule_menu
from presets import presets
from tests.app.visitor import FITS, MOVING, PROMPT, wait_address, wait_prompt

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
    assert visitor.page.locator("#recorded").count() == 0, "no folder of records, no list"


def press_at(visitor, button: str, step: int) -> None:
    """Press a button as soon as ``step`` steps have come, because the run is soon over."""
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
def test_a_run_comes_to_its_end_is_looked_back_at_and_another_is_paused_and_stopped(visit):
    visitor = visit(**MOVING)
    comes_to_its_end(visitor)
    looking_back_asks_nothing_of_the_server(visitor)
    visitor.pick("none")
    visitor.set_number("max_new_tokens", 200)
    visitor.set_number("temperature", 1.5)  # where the text does not end by itself
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
    visitor.go("/")
    visitor.page.wait_for_function("DraftscopePage.agrees('watch')")
    the_address_is_not_written_while_steps_are_replayed(visitor)


def looking_back_asks_nothing_of_the_server(visitor) -> None:
    page, timeline = visitor.page, visitor.page.locator("#timeline")
    page.wait_for_selector("#watch-view .ds-speed[data-known]")  # the page asks until it is known
    asked = len(visitor.requests)
    timeline.press("Home")
    assert timeline.get_attribute("aria-valuenow") == "1"
    timeline.press("ArrowUp")
    box = timeline.bounding_box()
    page.mouse.move(box["x"] + 5, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 5, box["y"] + 20, steps=12)
    page.mouse.up()
    timeline.press("Home")
    page.locator("#tree g[data-node]").first.dispatch_event("click")
    wait_address(page, step=1, node=page.evaluate("DraftscopePage.view('watch').chosen"))
    assert visitor.requests[asked:] == []
    assert page.inner_text("#inspector").strip()


WRITES = """() => {
  const put = history.replaceState.bind(history), view = DraftscopePage.view('watch');
  window.moving = [];
  history.replaceState = (...given) => { window.moving.push(view.playing); put(...given); };
  view.goto(0);
  view.setPace('brisk');
  view.play();
}"""
"""Replay the steps, and record at each change of the address whether they were being replayed."""


def the_address_is_not_written_while_steps_are_replayed(visitor) -> None:
    page = visitor.page
    page.evaluate(WRITES)
    page.wait_for_function("DraftscopePage.view('watch').step > 4")
    page.evaluate("DraftscopePage.view('watch').pause()")
    page.wait_for_function(
        "DraftscopePage.view('watch').step + 1 === Number(new URLSearchParams(location.search).get('step'))"
    )
    moving = page.evaluate("window.moving")
    assert moving and not any(moving)


@pytest.mark.journey
def test_the_controls_keep_numbers_in_range_and_travel_in_the_address(visit):
    """The numbers of an address, of an example and of a visitor; a size that is left to the machine; a draft; a rule."""
    visitor = visit("/?drafter=chain&o.length=99&t=9")
    page, sampled = visitor.page, next(preset for preset in presets() if preset.temperature)
    told = "temperature 9 was set to 2, length 99 was set to 32"
    page.wait_for_function(f"document.querySelector('#watch-status').innerText.includes('{told}')")
    assert lines(visitor.trace())[-1]["kind"] == "summary", "it opens on a finished run"
    shown = "title => document.querySelector('.pg-judging').innerText.includes(`Here: ${title} `)"
    automatic = drafter_menu()[sampled.drafter]["automatic"]
    visitor.choose_example(sampled.title)
    wait_prompt(page, sampled.prompt)
    page.wait_for_function(shown, arg=rule_menu()[automatic["warm"]]["title"])
    visitor.change()
    page.click("#more button")
    page.locator("#max_new_tokens").wait_for()
    assert page.locator("#top_k").is_hidden() and page.locator("#json-schema").is_hidden()
    heat, said = (
        page.locator("#temperature input[type=number]"),
        page.locator("#temperature .pg-bound"),
    )
    heat.fill("9")
    said.get_by_text("9 is out of range (0 to 2): set to 2.").wait_for()
    heat.fill("1")
    said.get_by_text("out of range").wait_for(state="detached")
    visitor.set_number("temperature", 0)
    page.wait_for_function(shown, arg=rule_menu()[automatic["cold"]]["title"])
    page.click("#advanced button")
    page.locator("#json-schema").wait_for()
    assert "Does nothing at temperature 0" in page.inner_text("#seed")
    visitor.pick("prompt_lookup")
    assert page.locator("[data-option=draft]").count() == 0
    visitor.set_number("max_new_tokens", 16)
    visitor.pick("chain")
    length = page.locator("[data-option=length]")
    assert length.input_value() == "" and length.get_attribute("placeholder") == "auto"
    for written, read in (("99", "32"), ("3", "3"), ("0", ""), ("5", "5"), ("", "")):
        length.fill(written)
        length.press("Tab")
        assert length.input_value() == read
        told = page.locator(".pg-option:has([data-option=length]) .pg-bound")
        if written == "99":
            assert told.inner_text() == "99 is out of range (0 to 32): set to 32."
        else:
            assert told.is_hidden()
    page.click("#copy-link")
    page.wait_for_function("location.search.includes('o.length=0')")
    assert visitor.run() == "done"
    assert lines(visitor.trace())[0]["drafter"]["options"]["length"] > 0
    other = "draft-3m"
    page.locator("[data-option=draft]").select_option(other)
    named = next(o for o in drafter_menu()["chain"]["options"] if o["name"] == "draft")["said"][
        other
    ]
    assert page.evaluate(FITS, ["[data-option=draft]", named]), "read whole"
    length.fill("2")
    length.press("Tab")
    visitor.set_number("temperature", 0.8)
    visitor.set_number("seed", 5)
    page.select_option("#verifier", "sampler_match")
    assert visitor.run() == "done"
    run = lines(visitor.trace())[0]
    assert run["drafter"]["parts"] == {"draft": other}
    assert run["drafter"]["options"]["length"] == 2
    assert run["verifier"]["key"] == "sampler_match"
    assert run["sampling"] == {"temperature": 0.8, "top_k": 0, "top_p": 1, "seed": 5}
    assert f"with {other}" in page.inner_text("#watch-view .ds-run-title")
    page.wait_for_function("DraftscopePage.agrees('watch')")
    page.wait_for_function("location.search.includes('o.draft=draft-3m')")
    page.locator("[data-option=draft]").select_option("draft")
    page.locator(".pg-cover").get_by_text("Draft").wait_for()
    rule, option = next(
        (key, option)
        for key, rule in rule_menu().items()
        for option in rule["options"]
        if option["type"] in ("int", "float")
    )
    visitor.go(f"/?verifier={rule}&r.{option['name']}=1e9&t=0")
    page.wait_for_function("rule => document.querySelector('#verifier').value === rule", arg=rule)
    page.click("#copy-link")
    page.wait_for_function("location.search.includes('r.')")
    asked = parse_qs(urlsplit(page.url).query)
    assert asked["verifier"] == [rule]
    assert float(asked[f"r.{option['name']}"][0]) == option["maximum"]
