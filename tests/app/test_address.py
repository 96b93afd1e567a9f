"""The address bar, copied while nothing moves, is a link to what is on the screen; back and forward lead to what was there."""

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from presets import opening_example, presets, races, trace_text
from tests.app.visitor import clear, covered, wait_address, wait_prompt


def asked(page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def choose_token(page, step: int) -> None:
    page.evaluate("step => DraftscopePage.view('watch').goto(step)", step)
    page.locator("#tree g[data-node='0']").click()


def wait_token(page, step: int) -> None:
    page.wait_for_function(
        "step => DraftscopePage.view('watch').step === step && DraftscopePage.view('watch').chosen === 0",
        arg=step,
    )


@pytest.mark.journey
def test_it_brings_a_run_of_ones_own_again(visit):
    """With its step and its chosen token. Meanwhile it follows every edit."""
    first, prompt, example = visit("/"), "A small & odd prompt?", presets()[0]
    page = first.page
    wait_address(page, preset=example.name, run=1)
    first.type_prompt("Something else")
    wait_address(page, preset=None, prompt="Something else", run=None, step=None)
    first.change()
    page.get_by_role("radio", name="Pictures", exact=True).check()
    wait_address(page, models="image")
    page.get_by_role("radio", name="Small, instant", exact=True).check()
    first.type_prompt(example.prompt)
    wait_address(page, preset=example.name, prompt=None, models=None, run=1)
    first.pick("chain")
    first.type_prompt(prompt)
    first.set_number("seed", 7)
    first.set_number("max_new_tokens", 16)
    wait_address(page, run=None, drafter="chain", prompt=prompt, n=16, seed=7)
    assert first.run() == "done"
    wait_address(page, run=1)
    choose_token(page, 0)
    page.click("#copy-link")
    wait_address(page, run=1, step=1, node=0)
    text = page.inner_text("#text")
    other = visit("/" + page.evaluate("location.search"))
    page = other.page
    page.wait_for_function(
        "([key, prompt]) => { const run = JSON.parse(DraftscopePage.trace('watch').split('\\n')[0] || '{}');"
        " return run.drafter?.key === key && run.prompt.text === prompt && DraftscopePage.agrees('watch'); }",
        arg=["chain", prompt],
    )
    wait_token(page, 0)
    page.locator("#timeline").press("End")
    page.locator("#timeline").press("Home")
    assert page.inner_text("#text") == text
    other.go("/?preset=picture")
    wait_address(page, preset="picture", models="image")
    other.change()
    page.get_by_role("radio", name="Small, instant", exact=True).check()
    wait_address(page, preset=None, models=None, prompt="3")
    page.wait_for_function("document.querySelector('#preset :checked') === null")


@pytest.mark.journey
def test_back_and_forward_lead_to_what_was_there(visit):
    """To examples with the step that was left, past a paused run, through races and between tabs."""
    first, second, third = presets()[:3]
    visitor = visit(f"/?__theme=dark&preset={first.name}&step=3&node=final")
    page = visitor.page
    page.wait_for_function("DraftscopePage.view('watch').step === 2")
    clear(page)
    assert page.evaluate("DraftscopePage.view('watch').chosen") == "final"
    before = page.evaluate("history.length")
    choose_token(page, 1)
    wait_address(page, preset=first.name, step=2, node=0, __theme="dark")
    page.locator("#timeline").press("ArrowRight")
    wait_address(page, step=3, node=None)
    choose_token(page, 1)
    wait_address(page, step=2, node=0)
    assert page.evaluate("history.length") == before, "nothing to go back to"
    for example in (second, third):
        visitor.choose_example(example.title)
        wait_address(page, preset=example.name, node=None)
        clear(page)
    for move, example in ((page.go_back, second), (page.go_back, first), (page.go_forward, second)):
        move()
        wait_prompt(page, example.prompt)
        clear(page)
        assert visitor.trace() == trace_text(example.name)
        if example is first:
            wait_token(page, 1)
            page.wait_for_timeout(1500)  # the address has settled again
            assert asked(page)["step"] == ["2"] and asked(page)["node"] == ["0"]
    visitor.click("step")
    visitor.wait_state("paused")
    clear(page)
    run = visitor.trace()
    page.go_back()
    page.wait_for_function(
        "p => document.querySelector('#prompt textarea').value === p", arg=first.prompt
    )
    covered(page, "the prompt")
    assert visitor.trace() == run
    visitor.click("stop")
    visitor.wait_state("done")
    covered(page, "the prompt")
    page.go_forward()
    wait_prompt(page, second.prompt)
    clear(page)
    through_races_and_tabs(visitor, third)
    visitor.go("/?preset=nowhere")
    wait_prompt(page, first.prompt)
    assert visitor.trace() == trace_text(opening_example())


def through_races_and_tabs(visitor, example) -> None:
    """Go forward to this example, and open Compare before the server has answered that step."""
    page, held = visitor.page, []
    page.route("**/gradio_api/run/**", lambda route: held.append(route))
    page.go_forward()
    visitor.open_compare()
    wait_address(page, tab="compare")
    assert held, "the server has yet to answer"
    for route in held:
        route.continue_()
    page.unroute("**/gradio_api/run/**")

    def shows(race) -> None:
        wait_prompt(page, race.prompt, "compare")
        clear(page, "compare")
        expect(page.locator("#race-preset input")).to_have_value(race.title)

    wait_address(page, tab="compare", lane1=races()[0].lanes[0].drafter)
    shows(races()[0])
    wait_prompt(page, example.prompt)
    assert asked(page)["tab"] == ["compare"], "its late state leaves the address alone"
    visitor.choose("race-preset", races()[1].title)
    wait_address(page, preset=races()[1].name)
    shows(races()[1])
    page.get_by_role("tab", name="Watch").click()
    wait_address(page, tab=None, preset=example.name)
    clear(page)
    open_tab = "#rooms [role=tab][data-tab-id={}][aria-selected=true]"
    for move, race in ((page.go_back, 1), (page.go_back, 0), (page.go_forward, 1)):
        move()
        page.wait_for_selector(open_tab.format("compare"))
        shows(races()[race])
    page.go_forward()
    page.wait_for_selector(open_tab.format("watch"))
    clear(page)
