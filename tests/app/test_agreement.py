"""When the picture shows another run than the controls describe, a message over the picture says so."""

from urllib.parse import urlencode

import pytest

from app.example_menu import race_menu
from presets import presets, races
from tests.app.visitor import (
    FITS,
    PROMPT,
    VIEWPORT,
    clear,
    covered,
    wait_address,
    wait_prompt,
    written,
)


def numbers_are_marked(visitor, tokens: int, room: str = "watch") -> None:
    """Check that each changed number marks the picture, and that its old value clears the mark. tokens: the number of
    new tokens of the run on the screen."""
    before = "race-" if room == "compare" else ""
    for name, value, usual, words in (
        ("temperature", 0.5, 0, "the temperature"),
        ("seed", 3, 0, "the seed"),
        ("max_new_tokens", 20, tokens, "the number of new tokens"),
    ):
        visitor.set_number(name, value, before)
        covered(visitor.page, words, room=room)
        visitor.set_number(name, usual, before)
        clear(visitor.page, room)


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


@pytest.mark.journey
def test_every_edit_is_marked_at_the_picture(visit):
    visitor = visit()
    page = visitor.page
    covered(page, "the prompt", "Press Run")
    page.get_by_role("button", name="Press Run for yours").click()
    clear(page)
    wait_prompt(page, PROMPT)
    visitor.type_prompt(PROMPT + " sat")
    covered(page, "the prompt is not as you set it")
    visitor.type_prompt(PROMPT)
    clear(page)
    visitor.change()
    budget = page.locator("[data-option=budget]")
    before = budget.input_value()
    for value, ask in (("7", covered), (before, clear)):
        written(budget, value)
        ask(page)
    numbers_are_marked(visitor, 16)
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
    assert visitor.run() == "done"
    clear(page)
    length = page.locator("[data-option=length]")
    written(length, 2)  # it was chosen automatically
    covered(page, "length")
    assert visitor.run() == "done"
    clear(page)
    written(length, "")
    covered(page, "length")
    visitor.go("/")
    wait_prompt(page, presets()[0].prompt)
    clear(page)
    visitor.set_number("max_new_tokens", 20)
    covered(page, "the number of new tokens")
    visitor.go(f"/?preset={presets()[1].name}&seed=7&t=0.5")
    covered(page, "the temperature and the seed", "are not as you set them")


@pytest.mark.journey
def test_edits_are_marked_while_a_run_goes_on_or_waits(visit):
    words = "the red boat and the tall tree " * 9
    long = urlencode({"prompt": f"Repeat 4 times: {words}\nOutput:\n"})
    visitor = visit(f"/?{long}&n=256&drafter=none")
    page = visitor.page
    covered(page, "the prompt")
    page.evaluate(EDITED_MEANWHILE, "Something else")
    visitor.click("run")
    page.wait_for_function("window.told")
    assert page.evaluate("window.told") == "Changed since this run began: the prompt."
    page.evaluate("document.getElementById('stop').click()")  # the run may be over by now
    visitor.wait_state("done")
    covered(page, "the prompt is not as you set it")
    visitor.click("step")
    visitor.wait_state("paused")
    clear(page)
    before = visitor.trace()
    visitor.choose_example(presets()[1].title)
    covered(page, "the prompt")
    assert visitor.trace() == before and visitor.state == "paused"


@pytest.mark.journey
def test_edits_in_compare_are_marked_too(visit):
    visitor = visit(f"/?tab=compare&prompt={PROMPT}&n=8&lane1=none&lane2=chain&seed=4")
    page = visitor.page
    page.wait_for_function("DraftscopePage.trace('compare')")
    covered(page, "the prompt", "the lanes", room="compare")
    page.get_by_role("button", name="Press Race for yours").click()
    clear(page, "compare")
    wait_prompt(page, PROMPT, "compare")
    page.wait_for_function("DraftscopePage.stateOf('compare') === 'done'")
    first = races()[0]
    visitor.go("/?tab=compare")
    wait_prompt(page, first.prompt, "compare")
    clear(page, "compare")
    page.fill("#race-prompt textarea", "The cat")
    covered(page, "the prompt is not as you set it", "Press Race", room="compare")
    page.fill("#race-prompt textarea", first.prompt)
    clear(page, "compare")
    numbers_are_marked(visitor, first.max_new_tokens, "compare")
    visitor.change("race-")
    page.get_by_label("Rule and options of lane 2").click()
    length = page.locator(".pg-racer:nth-child(2) [data-option=length]")
    before = length.input_value()
    written(length, 3)
    covered(page, "length", room="compare")
    written(length, before)
    clear(page, "compare")
    page.get_by_label("Remove lane 5").click()
    covered(page, "the lanes", room="compare")
    visitor.pick("jacobi", ".pg-racer:nth-child(2) .drafter")
    lane1 = first.lanes[0].drafter
    wait_address(page, tab="compare", preset=None, lane1=lane1, lane2="jacobi", lane5=None)
    wait_address(page, prompt=first.prompt)


def test_an_example_of_compare_brings_its_race_and_an_address_may_change_it(visit):
    visitor = visit("/?tab=compare&preset=race-budget")
    page, chosen = visitor.page, "document.querySelector('#race-preset input')?.value"
    race = next(race for race in races() if race.name == "race-budget")
    page.wait_for_function("DraftscopePage.trace('compare')")
    clear(page, "compare")
    wait_prompt(page, race.prompt, "compare")
    assert page.input_value("#race-preset input") == race.title
    page.wait_for_function(
        "document.querySelector(\"[data-lane='dyspec-3'] .ds-lane-name\").textContent.includes('odes 64')"
    )
    heads = page.locator("[data-lane] .ds-lane-head")
    assert not any("budget" in head for head in heads.all_inner_texts()), "named as in the controls"
    assert all(
        head.evaluate("e => e.scrollWidth <= e.clientWidth + 1")
        for head in page.locator(".ds-lane-head, .ds-lane-name").all()
    )
    for race in races()[1:3]:
        visitor.choose("race-preset", race.title)
        wait_prompt(page, race.prompt, "compare")
        clear(page, "compare")
        page.wait_for_function(
            "names => [...document.querySelectorAll('[data-lane]')].map((e) => e.dataset.lane)"
            ".join() === names",
            arg=",".join(lane.name for lane in race.lanes),
        )
    field = "#race-preset input"
    dots = f"getComputedStyle(document.querySelector('{field}')).textOverflow"
    assert page.evaluate(dots) == "ellipsis", "a title that is cut shows it"
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_timeout(300)
    titles = [entry["title"] for entry in race_menu().values()]
    assert [one for one in titles if not page.evaluate(FITS, [field, one])] == []
    assert not page.evaluate(FITS, [field, titles[0] * 3]), "which would be seen"
    page.set_viewport_size(VIEWPORT)
    for query in ("prompt=The+cat", "preset=race-story&prompt=The+cat"):
        visitor.go(f"/?tab=compare&{query}")
        page.wait_for_function(f"{chosen} === 'Your own'")
        covered(page, "the prompt", room="compare")
        visitor.go("/?tab=compare&preset=race-laws")
        page.wait_for_function(f"{chosen} !== 'Your own'")
        clear(page, "compare")
