"""Compare: lanes that race on one prompt."""

import json
from urllib.parse import urlencode

import pytest

from app.menu import drafter_menu, rule_menu
from app.settings import LIMITS
from engine.methods import drafters
from presets import races
from tests.app.visitor import ENDLESS, MOVING, PROMPT, clear, wait_figures, written

PLAYED = """() => {
  const look = () => { window.played ||= Boolean(document.querySelector('[aria-label="Pause the race"]')); };
  new MutationObserver(look).observe(document.body, {attributes: true, subtree: true});
}"""
"""Record that a race was seen to play, because it may be over by the time a test looks."""
LANES = [lane.name for lane in races()[0].lanes]


def lanes(page) -> list[str]:
    return [lane.get_attribute("data-lane") for lane in page.locator("[data-lane]").all()]


def wait_race(page, count: int) -> None:
    """Wait until ``count`` lanes have finished."""
    page.wait_for_function(
        """count => DraftscopePage.stateOf('compare') === 'done' &&
          document.querySelectorAll('[data-lane] .tree[data-state=done]').length === count""",
        arg=count,
    )


def entries(page, kind: str = "") -> list[dict]:
    """Return the lines of the race on the screen, or only the lines of this kind."""
    every = map(json.loads, page.evaluate("DraftscopePage.trace('compare')").splitlines())
    return [line for line in every if kind in ("", line["kind"])]


def race(visitor, count: int) -> None:
    visitor.page.click("#race")
    wait_race(visitor.page, count)


def tokens_in(page, lane: str) -> int:
    return page.locator(f"[data-lane={lane}] .text [data-index]").count()


def test_it_opens_on_a_finished_race_that_plays_and_explains_itself(visit):
    visitor = visit("/", **MOVING)
    page = visitor.page
    page.evaluate(PLAYED)
    visitor.open_compare()
    page.wait_for_function("window.played")
    page.wait_for_function("document.querySelectorAll('[data-lane] .text [data-index]').length > 9")
    asked = len(visitor.requests)
    page.get_by_role("button", name="End of the race").click()
    page.wait_for_selector(".ds-verdict:not([data-early])")
    assert lanes(page) == LANES
    assert page.locator(".ds-outcome tbody tr").count() == len(LANES)
    summaries = {entry["lane"]: entry for entry in entries(page, "summary")}
    assert {lane: tokens_in(page, lane) for lane in LANES} == {
        lane: summaries[lane]["new_tokens"] for lane in LANES
    }
    wait_figures(page, "compare")
    assert not [url for url in visitor.requests[asked:] if "race" in url]
    chain = page.locator("[data-lane=chain]")
    assert not chain.locator(".tree").is_visible(), "on demand"
    chain.get_by_role("button", name="Details").click()
    chain.locator(".tree g[data-node][data-status=rejected]").first.wait_for()
    telling = page.evaluate(
        "DraftscopePage.tellingStep(DraftscopePage.view('compare').lanes.get('chain').steps)"
    )
    assert chain.locator(f".timeline [data-step='{telling}'][data-now]").count() == 1
    last = chain.locator(".text [data-now]").last
    assert int(last.get_attribute("data-from-step")) == telling
    for lane in LANES:  # so that one sees that their texts are equal
        box = page.locator(f"[data-lane={lane}] .text")
        assert box.evaluate("box => box.scrollTop + box.clientHeight >= box.scrollHeight - 12")
    page.locator("[data-lane=none] .ds-lane-name .ds-term").focus()
    assert page.locator("#compare-view .ds-tip").inner_text() == drafters()["none"].summary


@pytest.mark.journey
def test_the_lanes_finish_and_agree(visit):
    visitor = visit()
    visitor.open_compare()
    page = visitor.page
    wait_race(page, len(LANES))
    assert page.get_by_role("button", name="Play the race").is_visible(), "it stands still"
    page.fill("#race-prompt textarea", PROMPT)
    visitor.set_number("max_new_tokens", 24, "race-")
    race(visitor, 5)
    assert lanes(page) == LANES
    summaries = entries(page, "summary")
    assert len({summary["text"] for summary in summaries}) == 1
    assert {summary["new_tokens"] for summary in summaries} == {24}
    assert "same text, token for token" in page.inner_text("#compare-view")
    assert "Done: all 5 lanes" in page.inner_text("#compare-status")
    for lane in LANES:
        assert tokens_in(page, lane) == 24
        assert page.locator(f"[data-lane={lane}] .timeline").count() == 1
    ratios = page.locator(".ds-outcome tbody tr td:nth-child(3)").all_inner_texts()
    assert ratios[0] == "1.00×" and all(ratio.endswith("×") for ratio in ratios)
    wait_figures(page, "compare")
    before, rows = entries(page), page.locator("#compare-view .ds-outcome tbody").inner_text()
    visitor.pick("dyspec", ".pg-racer:nth-child(2) .drafter")
    page.get_by_label("Rule and options of lane 2").click()
    written(page.locator(".pg-racer:nth-child(2) [data-option=budget]"), 256)
    page.click("#race")
    page.wait_for_function("DraftscopePage.stateOf('compare') === 'error'")
    said = page.inner_text("#compare-status .pg-alarm")
    assert f"at most {LIMITS.max_nodes} are allowed here" in said
    assert entries(page) == before, "a refused race leaves the finished one as it was"
    assert page.locator("#compare-view .ds-outcome tbody").inner_text() == rows


PRESS = """(id) => {
  const button = document.getElementById(id), trace = () => DraftscopePage.trace('compare');
  const before = trace();
  const look = () => {
    const runs = DraftscopePage.stateOf('compare') === 'running' && trace() !== before;
    if (runs && !button.disabled) button.click(); else requestAnimationFrame(look);
  };
  look();
}"""
"""Press a button as soon as the race's trace changes, because the race is soon over."""
AT_ONCE = """async ([first, then]) => {
  const [one, other] = [first, then].map((id) => document.getElementById(id));
  one.click();
  while (other.disabled) await new Promise((next) => setTimeout(next));
  other.click();
  return document.querySelector('#compare-status').innerText;
}"""
"""Press two buttons, one after the other."""


def before_any_answer(page, first: str, then: str) -> str:
    """Press two buttons while the first one's request to the server is held back. Returns the page's message."""
    held = []
    page.route("**/queue/join*", lambda route: held.append(route))
    said = page.evaluate(AT_ONCE, [first, then])
    for route in held:
        route.continue_()
    page.unroute("**/queue/join*")
    return said


def wait_state(page, state: str) -> list[dict]:
    page.wait_for_function("state => DraftscopePage.stateOf('compare') === state", arg=state)
    return entries(page)


@pytest.mark.journey
def test_a_race_waits_goes_on_and_is_stopped(visit):
    """Five lanes of plain decoding; the second time, both buttons are pressed before the server has answered."""
    asked = {"tab": "compare", "prompt": ENDLESS, "n": 256}
    asked |= {f"lane{number}": "none" for number in range(1, 6)}
    page = visit(f"/?{urlencode(asked)}").page
    page.wait_for_selector(".pg-racer >> nth=4", state="attached")
    page.wait_for_selector("#compare-status .pg-say", state="attached")
    for early in (False, True):
        if early:
            assert "pauses as soon as it begins" in before_any_answer(page, "race", "race-pause")
        else:
            page.evaluate(PRESS, "race-pause")
            page.click("#race")
        before = wait_state(page, "paused")
        assert {entry["drafter"]["key"] for entry in before if entry["kind"] == "run"} == {"none"}
        page.wait_for_timeout(600)
        assert entries(page) == before, "a paused race stands still"
        assert page.inner_text("#race-pause").strip() == "Resume"
        assert "Race begins anew" in page.inner_text("#compare-status")
        if early:
            said = before_any_answer(page, "race-pause", "race-stop")
            assert "stops as soon as it begins" in said
        else:
            page.evaluate(PRESS, "race-stop")
            page.click("#race-pause")
        after = wait_state(page, "done")
        assert after[: len(before)] == before and len(after) > len(before)
        assert "Stopped: 0 of 5 lanes" in page.inner_text("#compare-status")
        assert [entry["stop"] for entry in after if entry["kind"] == "summary"] == ["cancelled"] * 5


@pytest.mark.journey
def test_lanes_are_set_one_by_one_and_travel_in_the_link(visit):
    lanes_of = "lane1=chain&lane1.length=99&lane2=nonsense&lane3=speculative_thinking"
    visitor = visit(f"/?tab=compare&{lanes_of}&n=6&seed=4&prompt=The+cat")
    page = visitor.page
    racers = page.locator(".pg-racer")
    # the tab named in the address is open, with the settings of the address that make sense
    page.wait_for_function("document.querySelectorAll('.pg-racer').length === 2")
    visitor.change("race-")
    fields = page.locator(".pg-racer [role=combobox]")
    for key, field in zip(("chain", "speculative_thinking"), fields.all(), strict=True):
        label = drafter_menu()[key]["label"]
        assert field.get_attribute("title") == field.input_value() == label, "said whole"
    assert page.locator("#race-lanes button[aria-label='Remove lane 1']").is_disabled()
    while page.is_enabled("#add-lane"):
        page.click("#add-lane")
    assert racers.count() == 5
    assert page.evaluate("document.activeElement.ariaLabel") == "Drafter of lane 5"
    for number in (5, 4, 2):
        page.click(f"#race-lanes button[aria-label='Remove lane {number}']")
    assert racers.count() == 2
    visitor.pick("chain", ".pg-racer:nth-child(2) .drafter")
    assert fields.nth(1).get_attribute("title") == drafter_menu()["chain"]["label"]
    page.get_by_label("Rule and options of lane 2").click()
    written(page.locator(".pg-racer:nth-child(2) [data-option=length]"), 2)
    page.click("#race-link")
    page.wait_for_function("location.search.includes('lane2.length=2')")
    page.reload()
    page.wait_for_selector(".pg-racer >> nth=1", state="attached")
    page.wait_for_selector("[data-lane]")
    race(visitor, 2)
    assert lanes(page) == ["chain", "chain-2"]
    runs = entries(page, "run")
    assert [run["drafter"]["options"]["length"] for run in runs] == [32, 2]
    assert {(run["prompt"]["text"], run["sampling"]["seed"]) for run in runs} == {("The cat", 4)}
    assert {entry["new_tokens"] for entry in entries(page, "summary")} == {6}
    assert "length 2" in page.inner_text("[data-lane=chain-2] .ds-lane-rule")
    visitor.go("/?tab=compare&lane1=chain&lane2=dyspec&rule2=sampler_match&t=0.8&n=12")
    page.wait_for_function("document.querySelectorAll('.pg-racer-more').length === 2")
    visitor.change("race-")
    title = rule_menu()["sampler_match"]["title"]
    first, second = racers.nth(0), racers.nth(1)
    second.locator(".pg-racer-more > summary", has_text=f"{title} · lossless").wait_for()
    rule = first.get_by_label("rule", exact=True)
    if not rule.is_visible():
        first.locator(".pg-racer-more > summary").click()
    offered = rule.locator("option").evaluate_all("all => all.map(o => o.value)")
    assert offered == ["", *drafter_menu()["chain"]["rules"]]
    rule.select_option("sampler_match")
    page.click("#race-link")
    page.wait_for_function("location.search.includes('rule1=sampler_match')")
    page.click("#race")
    clear(page, "compare")
    wait_race(page, 2)
    assert [run["verifier"]["key"] for run in entries(page, "run")] == ["sampler_match"] * 2
    heads = page.locator("[data-lane] .ds-lane-rule").all_inner_texts()
    assert all(f"rule {title}" in head for head in heads), "each lane may have one of its own"
    assert "same text, token for token" in page.inner_text("#compare-view .ds-same")
    rule.select_option("greedy")
    page.click("#race")
    page.wait_for_selector("#compare-status [role=alert]:not(:empty)")
    assert "temperature 0 only" in page.inner_text("#compare-status [role=alert]")


ON_SCREEN = """() => {
  const box = (what) => { const { top, bottom, left, right } = document.querySelector(what).getBoundingClientRect(); return { top, bottom, left, right }; };
  return { race: box('#race'), change: box('#race-change'), lanes: box('.ds-lanes'), table: box('.ds-outcome'), first: box('[data-lane]'),
    wide: document.documentElement.scrollWidth, tabs: [...document.querySelectorAll('#rooms [role=tab]')].filter((tab) => tab.checkVisibility()).length,
    panel: document.querySelector('#race-change-panel').checkVisibility() };
}"""


def test_it_stands_on_one_screen(visit):
    visitor = visit("/?tab=compare", viewport={"width": 1366, "height": 768})
    page = visitor.page
    page.wait_for_selector(".ds-outcome tbody tr")
    seen = page.evaluate(ON_SCREEN)
    assert seen["race"]["bottom"] <= 150 and seen["change"]["bottom"] <= 150 and not seen["panel"]
    assert seen["table"]["bottom"] <= 768 and seen["lanes"]["bottom"] <= 772
    assert seen["table"]["left"] > seen["lanes"]["right"], "the table stands beside the lanes"
    assert seen["wide"] <= 1366
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_function("document.querySelector('.ds-compare').hasAttribute('data-phone')")
    seen = page.evaluate(ON_SCREEN)
    assert seen["race"]["bottom"] <= 400 and seen["tabs"] == 5 and seen["wide"] <= 390
    assert seen["table"]["top"] > seen["lanes"]["top"]


@pytest.mark.journey
def test_a_run_is_raced_and_a_lane_is_watched_with_the_same_settings(visit):
    visitor = visit("/?preset=edit-lookup")
    page = visitor.page
    page.wait_for_function("DraftscopePage.agrees('watch')")
    page.click("#race-this")
    page.wait_for_function(
        "DraftscopePage.stateOf('compare') === 'done' && DraftscopePage.ranHere('compare')"
    )
    runs, asked = entries(page, "run"), page.input_value("#prompt textarea")
    assert [run["drafter"]["key"] for run in runs] == ["none", "prompt_lookup", "chain"]
    assert {run["prompt"]["text"] for run in runs} == {asked}
    assert {entry["new_tokens"] for entry in entries(page, "summary")} == {
        json.loads(visitor.trace().splitlines()[-1])["new_tokens"]
    }
    page.locator("[data-lane=chain]").get_by_role("button", name="Watch it").click()
    page.wait_for_function(
        "DraftscopePage.stateOf('watch') === 'done' && DraftscopePage.ranHere('watch')"
    )
    first = json.loads(visitor.trace().splitlines()[0])
    assert first["drafter"]["key"] == "chain" and first["prompt"]["text"] == asked
    assert first["drafter"]["options"] == runs[2]["drafter"]["options"]
    page.go_back()
    page.wait_for_selector("#race", state="visible")
