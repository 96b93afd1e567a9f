"""Whose settings the controls hold: an example's, or the visitor's own."""

import json

import pytest

from app import link
from app.controls import RANGES
from app.menu import offer, opening_race, preset_menu, race_menu
from app.settings import LIMITS
from engine.trace import read_trace
from presets import presets, races, trace_text
from tests.app.visitor import payload
from tests.viz.builder import Toy
from viz.race import joined, split

OWN = "Your own"
SHOWN = """room => {
  const before = room === 'watch' ? '#' : '#race-', of = (id) => document.querySelector(before + id);
  if (!of('preset input')) return {};
  const card = document.querySelector('#preset :checked'), title = card ? card.ariaLabel : 'Your own';
  return {list: room === 'watch' ? title : of('preset input').value, card: card ? card.value : '',
    note: of('preset').closest('.tabitem').querySelector('.pg-note').textContent};
}"""


def taken_over(text: str) -> dict:
    """The control values that Watch takes from this trace."""
    values = link.read(link.wish_of(read_trace(text), offer()), preset_menu(), offer())
    return values | json.loads(values.get("pair", "{}"))


def own_options(values: dict) -> dict:
    """The drafter's own options; which draft model guesses is told beside them, and here it is the usual one."""
    assert values["options"].get("draft", "draft") == "draft"
    return {name: value for name, value in values["options"].items() if name != "draft"}


def wait_list(page, title: str, room: str = "watch") -> dict:
    page.wait_for_function(f"([room, title]) => ({SHOWN})(room).list === title", arg=[room, title])
    return page.evaluate(SHOWN, room)


@pytest.mark.parametrize("name", ["story-tree", "story-sampled", "edit-lookup"])
def test_a_run_says_how_to_make_it_again(name):
    trace = read_trace(trace_text(name))
    values = taken_over(trace.to_ndjson())
    assert values["prompt"] == trace.run["prompt"]["text"]
    assert values["drafter"] == trace.run["drafter"]["key"]
    assert own_options(values) == trace.run["drafter"]["options"]
    assert values["verifier"] == "", "the rule that comes by itself"
    assert {key: values[key] for key in trace.run["sampling"]} == trace.run["sampling"]
    usual = RANGES["max_new_tokens"].default  # also where the text came to its end before
    assert values["max_new_tokens"] == max(trace.summary["new_tokens"], usual)


def test_a_strangers_run_is_clamped_like_an_address():
    run, *rest = trace_text("story-tree").splitlines(keepends=True)
    changed = json.loads(run)
    changed["prompt"]["text"] = "x" * (LIMITS.prompt_characters + 5)
    changed["drafter"]["options"] |= {"budget": 10**9, "unheard": 1}
    changed["sampling"]["temperature"] = 99.0
    changed["verifier"]["key"] = "sampler_match"
    values = taken_over("".join([json.dumps(changed) + "\n", *rest]))
    assert len(values["prompt"]) == LIMITS.prompt_characters
    assert values["options"]["budget"] == 256 and "unheard" not in values["options"]
    assert (values["temperature"], values["verifier"]) == (2, "sampler_match")
    assert "pair" not in taken_over(Toy(key="nobody").ndjson())


def test_a_race_says_how_to_make_it_again():
    traces = {lane: read_trace(own) for lane, own in split(opening_race()).items()}
    wish = link.wish_of_race(traces.values(), offer())
    values = link.read_race(wish, race_menu(), offer())
    lanes = json.loads(values["lanes"])
    assert [lane["drafter"] for lane in lanes] == [lane.drafter for lane in races()[0].lanes]
    assert own_options(lanes[1]) == traces["chain"].run["drafter"]["options"]
    assert values["prompt"] == races()[0].prompt


@pytest.mark.journey
def test_prompt_and_drafter_make_an_example_the_visitors_own(visit):
    visitor = visit("/")
    page, first = visitor.page, presets()[0]
    page.wait_for_timeout(1500)  # the requests of the page's opening are over
    visitor.type_prompt(first.prompt + " and")
    shown = wait_list(page, OWN)
    assert shown["card"] == "" and shown["note"].startswith(OWN)
    asked = len(visitor.requests)
    visitor.type_prompt(first.prompt)
    shown = wait_list(page, first.title)
    assert (shown["card"], shown["note"]) == (first.name, f"Look for: {first.look_for}")
    calls = [url for url in visitor.requests[asked:] if "/queue/join" in url]
    assert calls == [], "the browser sees to it alone"
    visitor.pick("chain")
    wait_list(page, OWN)
    page.click("#copy-link")
    page.wait_for_function("location.search.includes('drafter=chain')")
    assert "preset=" not in page.url and "prompt=" in page.url
    page.goto(page.url)
    shown = wait_list(page, OWN)
    assert shown["card"] == ""
    visitor.choose_example(presets()[1].title)
    page.wait_for_selector(f"#preset [value={presets()[1].name}]:checked", state="attached")
    wait_list(page, presets()[1].title)


def test_an_opened_run_brings_its_settings(visit):
    visitor = visit("/")
    page, name = visitor.page, "edit-lookup"
    trace = read_trace(trace_text(name))
    page.set_input_files("#open-trace", payload(name))
    shown = wait_list(page, OWN)
    assert shown["card"] == "" and shown["note"].startswith(OWN)
    assert page.input_value("#prompt textarea") == trace.run["prompt"]["text"]
    assert page.input_value("#drafter input").endswith("(prompt_lookup)")
    assert visitor.run() == "done"
    again = read_trace(visitor.trace())
    assert {k: again.run[k] for k in ("prompt", "sampling")} == {
        k: trace.run[k] for k in ("prompt", "sampling")
    }
    for made in ("drafter", "verifier"):
        assert {k: again.run[made][k] for k in ("key", "options")} == {
            k: trace.run[made][k] for k in ("key", "options")
        }
    assert again.summary["text"] == trace.summary["text"]


def test_lanes_make_an_example_the_visitors_own_and_a_race_brings_its_lanes(visit, tmp_path):
    visitor = visit("/?tab=compare", reduced_motion="reduce")
    page = visitor.page
    note = wait_list(page, races()[0].title, "compare")["note"]
    assert note == f"Look for: {races()[0].look_for}"
    first = ".pg-racer:nth-child(1) .drafter"
    visitor.pick("dflash", first)
    assert wait_list(page, OWN, "compare")["note"].startswith(OWN)
    visitor.pick(races()[0].lanes[0].drafter, first)
    wait_list(page, races()[0].title, "compare")
    own = split(opening_race())
    file = tmp_path / "race.ndjson"
    file.write_text(joined({key: own[key] for key in ("dyspec", "none")}), "utf-8")
    page.wait_for_function("DraftscopePage.trace('compare')")
    page.set_input_files("#open-race", file)
    wait_list(page, OWN, "compare")
    chosen = page.locator(".pg-racer [role=combobox]").evaluate_all("all => all.map(e => e.value)")
    assert [name.endswith(key) for name, key in zip(chosen, ["(dyspec)", "(none)"])] == [True] * 2
