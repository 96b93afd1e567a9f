"""The address bar, copied while nothing moves, is a link to what is on the screen."""

from urllib.parse import parse_qs, urlsplit

import pytest

from presets import presets, races
from tests.app.visitor import MOVING

STILL = {"reduced_motion": "reduce"}
WRITES = """() => {
  const put = history.replaceState.bind(history);
  window.moving = [];
  history.replaceState = (...given) => { window.moving.push(DraftscopePage.view('watch').playing); put(...given); };
}"""
"""Record at each change of the address whether steps were being replayed."""


def asked(page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def wait_address(page, **parts: object) -> None:
    page.wait_for_function(
        "parts => { const query = new URLSearchParams(location.search);"
        " return parts.every(([name, value]) => query.get(name) === value); }",
        arg=[[name, None if value is None else str(value)] for name, value in parts.items()],
    )


def choose_token(page, step: int, node: int) -> None:
    page.evaluate("step => DraftscopePage.view('watch').goto(step)", step)
    page.locator(f"#tree g[data-node='{node}']").click()


def wait_token(page, step: int, node: int) -> None:
    page.wait_for_function(
        "([step, node]) => DraftscopePage.view('watch').step === step && DraftscopePage.view('watch').chosen === node",
        arg=[step, node],
    )


def test_it_has_step_and_token_of_what_is_on_the_screen(visit):
    page = visit("/?__theme=dark", **STILL).page
    before = page.evaluate("history.length")
    choose_token(page, 1, 0)
    wait_address(page, preset=presets()[0].name, step=2, node=0, __theme="dark")
    page.locator("#timeline").press("ArrowRight")
    wait_address(page, step=3, node=None)
    choose_token(page, 1, 0)
    wait_address(page, step=2, node=0)
    assert page.evaluate("history.length") == before, "nothing to go back to"
    other = visit("/" + page.evaluate("location.search"), **STILL).page
    wait_token(other, 1, 0)


@pytest.mark.journey
def test_it_brings_a_run_of_ones_own_again(visit):
    """With its step and its chosen token."""
    first, prompt = visit(**STILL), "A small & odd prompt?"
    page = first.page
    first.pick("chain")
    first.type_prompt(prompt)
    first.set_number("seed", 7)
    wait_address(page, run=None, drafter="chain", prompt=prompt, n=16, seed=7)
    assert first.run() == "done"
    wait_address(page, run=1)
    choose_token(page, 0, 0)
    page.click("#copy-link")
    wait_address(page, run=1, step=1, node=0)
    text = page.inner_text("#text")
    page = visit("/" + page.evaluate("location.search"), **STILL).page
    page.wait_for_function(
        "([key, prompt]) => { const run = JSON.parse(DraftscopePage.trace('watch').split('\\n')[0] || '{}');"
        " return run.drafter?.key === key && run.prompt.text === prompt && DraftscopePage.agrees('watch'); }",
        arg=["chain", prompt],
    )
    wait_token(page, 0, 0)
    page.locator("#timeline").press("End")
    page.locator("#timeline").press("Home")
    assert page.inner_text("#text") == text


def test_back_leads_to_the_step_that_was_left(visit):
    visitor = visit("/", **STILL)
    page = visitor.page
    choose_token(page, 1, 0)
    wait_address(page, step=2, node=0)
    visitor.choose_example(presets()[1].title)
    wait_address(page, preset=presets()[1].name, node=None)
    page.wait_for_function("DraftscopePage.agrees('watch')")
    page.go_back()
    page.wait_for_function("p => DraftscopePage.exampleShown('watch') === p", arg=presets()[0].name)
    wait_token(page, 1, 0)
    page.wait_for_timeout(2500)  # the address has settled again
    assert asked(page)["step"] == ["2"] and asked(page)["node"] == ["0"]
    visitor.open_compare()
    wait_address(page, tab="compare", lane1=races()[0].lanes[0].drafter)
    page.go_back()
    page.wait_for_selector("#rooms [role=tab][data-tab-id=watch][aria-selected=true]")
    wait_token(page, 1, 0)


def test_it_is_not_written_while_steps_are_replayed(visit):
    page = visit("/", **MOVING).page
    page.evaluate(WRITES)
    page.evaluate("DraftscopePage.view('watch').goto(0)")
    page.evaluate("DraftscopePage.view('watch').setPace('brisk')")
    page.evaluate("DraftscopePage.view('watch').play()")
    page.wait_for_function("DraftscopePage.view('watch').step > 4")
    page.evaluate("DraftscopePage.view('watch').pause()")
    page.wait_for_function(
        "DraftscopePage.view('watch').step + 1 === Number(new URLSearchParams(location.search).get('step'))"
    )
    moving = page.evaluate("window.moving")
    assert moving and not any(moving)


def test_an_edit_is_in_it_and_the_run_of_before_is_not(visit):
    visitor = visit("/", **STILL)
    page = visitor.page
    wait_address(page, preset=presets()[0].name, run=1)
    visitor.type_prompt("Something else")
    wait_address(page, preset=None, prompt="Something else", run=None, step=None)
    visitor.change()
    page.get_by_role("radio", name="Pictures", exact=True).check()
    wait_address(page, models="image")
    page.get_by_role("radio", name="Small, instant", exact=True).check()
    visitor.type_prompt(presets()[0].prompt)
    wait_address(page, preset=presets()[0].name, prompt=None, models=None, run=1)


def test_an_example_of_pictures_set_to_text_is_no_example(visit):
    visitor = visit("/?preset=picture", **STILL)
    page = visitor.page
    wait_address(page, preset="picture", models="image")
    visitor.change()
    page.get_by_role("radio", name="Small, instant", exact=True).check()
    wait_address(page, preset=None, models=None, prompt="3")
    page.wait_for_function("document.querySelector('#preset :checked') === null")
