"""When the picture shows another run than the controls describe, a message over the picture says so."""

import json
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from presets import opening_example, presets, race_traces, races, trace_text
from tests.app.test_address import wait_address
from tests.app.visitor import PROMPT, payload
from viz.race import joined

STILL = {"reduced_motion": "reduce"}
COVER = ".pg-cover[data-for={}]"


def covered(page, *words: str, room: str = "watch") -> None:
    """Wait until the message over the picture says that it shows another run, and names these settings."""
    over = page.locator(COVER.format(room))
    over.wait_for()
    for word in words:
        over.get_by_text(word).wait_for()
    assert page.locator(f"#{room}-view .ds[data-stale]").count() == 1, "it is dimmed"


def clear(page, room: str = "watch") -> None:
    """Wait until the picture is known to show the run that the controls describe."""
    page.wait_for_function(f"DraftscopePage.agrees('{room}')")
    page.locator(COVER.format(room)).wait_for(state="detached")
    assert page.locator(f"#{room}-view .ds[data-stale]").count() == 0


def shown_prompt(page, room: str = "watch") -> str:
    trace = page.evaluate(f"DraftscopePage.trace('{room}')")
    return json.loads(trace.splitlines()[0])["prompt"]["text"]


def test_a_link_to_an_own_prompt_says_press_run(visit):
    visitor = visit(**STILL)
    covered(visitor.page, "the prompt", "Press Run")
    visitor.page.get_by_role("button", name="Press Run for yours").click()
    clear(visitor.page)
    assert shown_prompt(visitor.page) == PROMPT


@pytest.mark.journey
def test_every_edit_is_marked_at_the_picture(visit):
    visitor = visit("/", **STILL)
    page = visitor.page
    clear(page)
    prompt = presets()[0].prompt
    visitor.type_prompt(prompt + " sat")
    covered(page, "the prompt is not as you set it")
    visitor.type_prompt(prompt)
    clear(page)
    visitor.change()
    budget = page.locator("[data-option=budget]")
    before = budget.input_value()
    for value, ask in (("7", covered), (before, clear)):
        budget.fill(value)
        budget.press("Tab")
        ask(page)
    for name, value, usual, words in (
        ("temperature", 0.5, 0, "the temperature"),
        ("seed", 3, 0, "the seed"),
        ("max_new_tokens", 20, 96, "the number of new tokens"),
    ):
        visitor.set_number(name, value)
        covered(page, words)
        visitor.set_number(name, usual)
        clear(page)
    page.select_option("#verifier", "sampler_match")
    covered(page, "the rule")
    page.select_option("#verifier", "")
    clear(page)
    page.fill("#json-schema textarea", "{}")
    covered(page, "the JSON schema")
    page.fill("#json-schema textarea", "")
    clear(page)
    visitor.pick("chain")
    covered(page, "the drafter")


def test_a_run_takes_the_word_away_and_the_next_edit_brings_it_back(visit):
    visitor = visit(**STILL)
    page = visitor.page
    visitor.pick("chain")
    assert visitor.run() == "done"
    clear(page)
    length = page.locator("[data-option=length]")
    length.fill("2")  # it was chosen automatically
    length.press("Tab")
    covered(page, "length")
    assert visitor.run() == "done"
    clear(page)
    length.fill("")
    length.press("Tab")
    covered(page, "length")


def test_an_example_chosen_while_a_run_is_paused_is_marked(visit):
    visitor = visit(**STILL)
    visitor.click("step")
    visitor.wait_state("paused")
    clear(visitor.page)
    before = visitor.trace()
    visitor.choose_example(presets()[1].title)
    covered(visitor.page, "the prompt")
    assert visitor.trace() == before and visitor.state == "paused"


def test_a_file_brings_its_settings_and_a_refused_one_changes_nothing(visit, tmp_path):
    visitor = visit("/", **STILL)
    page = visitor.page
    name = "edit-lookup"
    page.set_input_files("#open-trace", payload(name))
    page.wait_for_function("DraftscopePage.trace('watch').includes('prompt_lookup')")
    clear(page)
    bad = tmp_path / "bad.ndjson"
    bad.write_text("this is\nno trace\n", "utf-8")
    page.set_input_files("#open-trace", bad)
    page.locator("#watch-status [role=alert]:not(:empty)").wait_for()
    clear(page)
    visitor.type_prompt("Something else")
    page.locator("#watch-status [role=alert]:not(:empty)").wait_for(state="detached")


def test_a_link_to_an_examples_step_needs_no_run(visit):
    name = presets()[1].name
    page = visit(f"/?preset={name}&step=3&node=final", **STILL).page
    page.wait_for_function("DraftscopePage.view('watch').step === 2")
    clear(page)
    assert page.evaluate("DraftscopePage.view('watch').chosen") == "final"


def test_back_and_forward_lead_to_the_examples_before(visit):
    visitor = visit("/", **STILL)
    page = visitor.page
    for preset in presets()[1:3]:
        visitor.choose_example(preset.title)
        page.wait_for_function("name => location.search.includes(name)", arg=preset.name)
        clear(page)
    page.go_back()
    page.wait_for_function(
        "p => document.querySelector('#prompt textarea').value === p", arg=presets()[1].prompt
    )
    clear(page)
    assert visitor.trace() == trace_text(presets()[1].name)
    page.go_back()
    page.wait_for_function(
        "p => document.querySelector('#prompt textarea').value === p", arg=presets()[0].prompt
    )
    clear(page)
    assert visitor.trace() == trace_text(opening_example())
    page.go_forward()
    page.wait_for_function(
        "p => document.querySelector('#prompt textarea').value === p", arg=presets()[1].prompt
    )
    clear(page)


def test_back_while_a_run_is_paused_leaves_the_run_and_marks_it(visit):
    visitor = visit("/", **STILL)
    page = visitor.page
    shown = "p => document.querySelector('#prompt textarea').value === p"
    first, second = presets()[:2]
    visitor.choose_example(second.title)
    page.wait_for_function("name => location.search.includes(name)", arg=second.name)
    clear(page)
    visitor.click("step")
    visitor.wait_state("paused")
    clear(page)
    run = page.evaluate("DraftscopePage.trace('watch')")
    page.go_back()
    page.wait_for_function(shown, arg=first.prompt)
    covered(page, "the prompt")
    assert page.evaluate("DraftscopePage.trace('watch')") == run
    visitor.click("stop")
    visitor.wait_state("done")
    covered(page, "the prompt")
    page.go_forward()
    page.wait_for_function(shown, arg=second.prompt)
    clear(page)
    assert visitor.trace() == trace_text(second.name)


def test_another_example_of_compare_brings_its_race(visit):
    visitor = visit("/?tab=compare", **STILL)
    page = visitor.page
    page.wait_for_function("DraftscopePage.trace('compare')")
    clear(page, "compare")
    for race in races()[1:3]:
        visitor.choose("race-preset", race.title)
        page.wait_for_function(
            "p => JSON.parse(DraftscopePage.trace('compare').split('\\n')[0]).prompt.text === p",
            arg=race.prompt,
        )
        clear(page, "compare")
        page.wait_for_function(
            "names => [...document.querySelectorAll('[data-lane]')].map((e) => e.dataset.lane)"
            ".join() === names",
            arg=",".join(lane.name for lane in race.lanes),
        )


@pytest.mark.journey
def test_edits_in_compare_are_marked_too(visit):
    visitor = visit("/?tab=compare", **STILL)
    page = visitor.page
    page.wait_for_function("DraftscopePage.trace('compare')")
    clear(page, "compare")
    page.fill("#race-prompt textarea", "The cat")
    covered(page, "the prompt", "Press Race", room="compare")
    page.fill("#race-prompt textarea", races()[0].prompt)
    clear(page, "compare")
    for name, value, usual, words in (
        ("temperature", 0.5, 0, "the temperature"),
        ("max_new_tokens", 20, races()[0].max_new_tokens, "the number of new tokens"),
        ("seed", 3, 0, "the seed"),
    ):
        visitor.set_number(name, value, "race-")
        covered(page, words, room="compare")
        visitor.set_number(name, usual, "race-")
        clear(page, "compare")
    visitor.change("race-")
    page.get_by_label("Rule and options of lane 2").click()
    length = page.locator(".pg-racer:nth-child(2) [data-option=length]")
    before = length.input_value()
    write(length, 3)
    covered(page, "length", room="compare")
    write(length, before)
    clear(page, "compare")
    page.get_by_label("Remove lane 5").click()
    covered(page, "the lanes", room="compare")
    visitor.pick("jacobi", ".pg-racer:nth-child(2) .drafter")
    lane1 = races()[0].lanes[0].drafter
    wait_address(page, tab="compare", preset=None, lane1=lane1, lane2="jacobi", lane5=None)
    wait_address(page, prompt=races()[0].prompt)


def write(field, value: object) -> None:
    field.fill(str(value))
    field.press("Tab")


EDITED_MEANWHILE = """(words) => {
  const box = document.querySelector('#prompt textarea');
  const write = Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, 'value').set;
  const look = () => {
    if (!DraftscopePage.trace('watch').includes('"Repeat 4')) return requestAnimationFrame(look);
    write.call(box, words);
    box.dispatchEvent(new Event('input', {bubbles: true}));
  };
  const note = () => {
    const said = document.querySelector('.pg-cover');
    if (said && !document.querySelector('#watch-view .ds[data-stale]')) window.told ||= said.textContent;
  };
  new MutationObserver(note).observe(document.querySelector('#watch-view'), {childList: true, subtree: true});
  look();
}"""
"""Change the prompt as soon as the run has begun; record the message over a picture that is not dimmed."""


def test_what_is_changed_while_a_run_goes_on_is_said_without_dimming_it(visit):
    words = "the red boat and the tall tree " * 9
    long = urlencode({"prompt": f"Repeat 4 times: {words}\nOutput:\n"})
    visitor = visit(f"/?{long}&n=256&drafter=none", **STILL)
    page = visitor.page
    covered(page, "the prompt")
    page.evaluate(EDITED_MEANWHILE, "Something else")
    visitor.click("run")
    page.wait_for_function("window.told")
    assert page.evaluate("window.told") == "Changed since this run began: the prompt."
    page.evaluate("document.getElementById('stop').click()")  # the run may be over by now
    visitor.wait_state("done")
    covered(page, "the prompt is not as you set it")


def test_a_link_to_a_changed_example_says_what_is_changed(visit):
    page = visit(f"/?preset={presets()[1].name}&seed=7&t=0.5", **STILL).page
    covered(page, "the temperature and the seed", "are not as you set them")


def test_a_race_of_ones_own_agrees_until_the_next_edit(visit):
    page = visit(f"/?tab=compare&prompt={PROMPT}&n=8&lane1=none&lane2=chain&seed=4", **STILL).page
    page.wait_for_function("DraftscopePage.trace('compare')")
    covered(page, "the prompt", "the lanes", room="compare")
    page.get_by_role("button", name="Press Race for yours").click()
    clear(page, "compare")
    assert shown_prompt(page, "compare") == PROMPT
    page.fill("#race-prompt textarea", "The cat")
    covered(page, "the prompt is not as you set it", room="compare")


def test_a_races_file_brings_its_settings_and_a_refused_one_changes_nothing(visit, tmp_path):
    page = visit("/?tab=compare", **STILL).page
    page.wait_for_function("DraftscopePage.trace('compare')")
    race, alarm = races()[1], "#compare-status [role=alert]:not(:empty)"
    names = [lane.name for lane in race.lanes][1:3]
    good, bad = tmp_path / "race.ndjson", tmp_path / "bad.ndjson"
    texts = {lane: race_traces(race.name)[lane] for lane in names}
    good.write_text(joined(texts), "utf-8")
    page.set_input_files("#open-race", good)
    page.wait_for_function("document.querySelectorAll('[data-lane]').length === 2")
    clear(page, "compare")
    assert page.input_value("#race-prompt textarea") == race.prompt
    bad.write_text("this is\nno race\n", "utf-8")
    page.set_input_files("#open-race", bad)
    page.locator(alarm).wait_for()
    clear(page, "compare")
    page.fill("#race-prompt textarea", "Something else")
    page.locator(alarm).wait_for(state="detached")
    covered(page, "the prompt", room="compare")


@pytest.mark.journey
def test_back_and_forward_lead_through_the_races_and_between_the_tabs(visit):
    visitor = visit("/?tab=compare", **STILL)
    page = visitor.page
    first, second = races()[:2]

    def shows(race) -> None:
        page.wait_for_function(
            "p => JSON.parse(DraftscopePage.trace('compare').split('\\n')[0] || '{}').prompt?.text === p",
            arg=race.prompt,
        )
        clear(page, "compare")
        expect(page.locator("#race-preset input")).to_have_value(race.title)

    shows(first)
    visitor.choose("race-preset", second.title)
    page.wait_for_function("name => location.search.includes(name)", arg=second.name)
    shows(second)
    page.get_by_role("tab", name="Watch").click()
    page.wait_for_function("!location.search.includes('tab=')")
    clear(page)
    page.go_back()
    page.wait_for_selector("#rooms [role=tab][data-tab-id=compare][aria-selected=true]")
    shows(second)
    page.go_back()
    shows(first)
    page.go_forward()
    shows(second)
    page.go_forward()
    page.wait_for_selector("#rooms [role=tab][data-tab-id=watch][aria-selected=true]")
    clear(page)


@pytest.mark.parametrize("query", ["prompt=The+cat", "preset=race-story&prompt=The+cat"])
def test_a_compare_link_with_another_prompt_is_your_own(visit, query):
    page = visit(f"/?tab=compare&{query}", **STILL).page
    page.wait_for_function("document.querySelector('#race-preset input')?.value === 'Your own'")
    page.wait_for_function("DraftscopePage.trace('compare')")
    covered(page, "the prompt", room="compare")


@pytest.mark.parametrize("name", ["race-budget", "race-laws"])
def test_a_compare_link_to_an_example_opens_on_its_race(visit, name):
    race = next(race for race in races() if race.name == name)
    page = visit(f"/?tab=compare&preset={race.name}", **STILL).page
    page.wait_for_function("DraftscopePage.trace('compare')")
    clear(page, "compare")
    assert shown_prompt(page, "compare") == race.prompt
    assert page.input_value("#race-preset input") == race.title
