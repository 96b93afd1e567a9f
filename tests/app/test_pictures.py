"""Pictures on Watch and in Compare: finished ones, a visitor's own, and what cannot write pictures."""

import json

import pytest

from app.controls import lanes
from app.example_menu import race_menu
from app.link import read_race, wish_of_race
from app.live import compare_job
from app.menu import drafter_menu, offer, plain_pair
from engine.errors import UserError
from engine.trace import read_trace
from presets import preset, race_traces, races, trace_text
from tests.app.visitor import clear, covered, wait_address

PICTURE = next(race for race in races() if race.models)
OWN = "/?tab=compare&models=image&prompt=3&t=1&n=12&lane1=none&lane2=sjd&lane2.window=6&rule2=gsd"


@pytest.mark.journey
def test_a_picture_is_watched_and_drawn(visit):
    visitor = visit("/?preset=picture")
    page, example = visitor.page, preset("picture")
    page.wait_for_function("t => DraftscopePage.trace('watch') === t", arg=trace_text("picture"))
    page.wait_for_selector("#text .ds-picture [data-index]")
    assert page.get_by_label("Pictures", exact=True).is_checked()
    wait_address(page, models="image")
    assert visitor.run() == "done"
    made = [json.loads(line) for line in visitor.trace().splitlines()]
    assert made[0]["family"] == example.models and made[0]["picture"]["width"] == 16
    page.wait_for_function(
        "n => document.querySelectorAll('#text [data-index]').length === n",
        arg=made[-1]["new_tokens"],
    )
    assert page.locator(".pg-cover").count() == 0
    visitor.change()
    page.get_by_role("radio", name="Small, instant", exact=True).check()
    covered(page, "the model")


def test_a_race_of_pictures_is_shown_and_run_and_a_lane_that_cannot_says_why(visit):
    visitor = visit(f"/?tab=compare&preset={PICTURE.name}")
    page = visitor.page
    page.wait_for_function("DraftscopePage.trace('compare')")
    clear(page, "compare")
    small = page.locator("#race-models").get_by_label("Small, instant", exact=True)
    assert page.locator("#race-models input:checked").get_attribute("value") == PICTURE.models
    for lane in PICTURE.lanes:
        trace = read_trace(race_traces(PICTURE.name)[lane.name])
        written = page.locator(f"[data-lane='{lane.name}'] .text [data-index]")
        assert written.count() == trace.summary["new_tokens"]
        assert page.locator(f"[data-lane='{lane.name}'] .ds-picture [data-index]").count() > 50
    assert page.locator("[data-lane='sjd-2'] .ds-badge").first.inner_text() == "lossy"
    visitor.change("race-")
    small.check()
    covered(page, "the model", room="compare")
    page.wait_for_function("document.querySelector('#race-preset input').value === 'Your own'")
    visitor.go(OWN)
    page.wait_for_function("document.querySelector('#race-models [value=image]').checked")
    page.wait_for_function("document.querySelectorAll('.pg-racer').length === 2")
    second = page.locator(".pg-racer:nth-child(2) .drafter")
    second.get_by_role("combobox").click()
    chain = second.locator("[role=option][data-key=chain]")
    assert chain.get_attribute("aria-disabled") == "true"
    assert "draft model, which this page does not have for “Pictures”" in chain.inner_text()
    assert second.locator("[role=option][data-key=jacobi]").get_attribute("aria-disabled") is None
    page.keyboard.press("Escape")
    page.click("#race")
    clear(page, "compare")
    page.wait_for_function("DraftscopePage.stateOf('compare') === 'done'")
    lines = map(json.loads, page.evaluate("DraftscopePage.trace('compare')").splitlines())
    made = [line for line in lines if line["kind"] == "run"]
    assert {run["family"] for run in made} == {"image"}
    assert [run["verifier"]["key"] for run in made][1] == "gsd"
    wait_address(page, models="image")
    visitor.change("race-")
    page.click("#add-lane")
    added = page.locator(".pg-racer:nth-child(3) [role=combobox]").input_value()
    key = added.rpartition("(")[2].rstrip(")")
    assert "image" not in drafter_menu()[key]["elsewhere"], "a lane that can run is added"
    small.check()
    second.get_by_role("combobox").click()
    page.wait_for_function(
        "document.querySelector('.pg-racer:nth-child(2) [data-key=chain]')?.ariaDisabled === null"
    )


@pytest.mark.parametrize("key", ["chain", "dflash"])
def test_the_server_refuses_such_a_lane_in_one_sentence(key):
    chosen = [plain_pair("none"), plain_pair(key)]
    values = {"prompt": "3", "lanes": json.dumps(chosen), "models": "image", "max_new_tokens": 4}
    with pytest.raises(UserError) as told:
        compare_job(values)
    title = drafter_menu()[key]["title"]
    reason = drafter_menu()[key]["elsewhere"]["image"]
    assert str(told.value) == f"{title} cannot run here: it {reason}."
    assert reason.endswith("for “Pictures”")


@pytest.mark.parametrize("models", ["", "image", "nothing", "<b>"])
def test_an_address_names_what_is_written_if_it_is_known(models):
    query = {"tab": "compare", "lane1": "none", "lane2": "sjd", "models": models}
    values = read_race(query, race_menu(), offer())
    assert values.get("models", "") == ("image" if models == "image" else "")
    lanes(values["lanes"])


def test_a_race_of_pictures_says_how_to_make_it_again():
    texts = race_traces(PICTURE.name).values()
    wish = wish_of_race([read_trace(text) for text in texts], offer())
    values = read_race(wish, race_menu(), offer())
    assert values["models"] == "image" and values["temperature"] == PICTURE.temperature
    assert [lane["verifier"] for lane in json.loads(values["lanes"])] == ["", "", "gsd"]
