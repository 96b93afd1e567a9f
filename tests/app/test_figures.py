"""The figures at the end of a run."""

import re

import networkx as nx
import pytest
from playwright.sync_api import expect

from engine.trace import read_trace
from presets import preset, trace_text
from tests.app.test_page import PHONE
from tests.app.visitor import SHORT, covered, wait_figures
from viz.mean_tree import mean_tree

KNOWN = "#watch-view .ds-speed[data-known]"
DRAWN = "#watch-figures .js-plotly-plot:visible .gtitle"


def titles(page) -> list[str]:
    return page.locator(DRAWN).all_text_contents()


@pytest.mark.journey
def test_the_speed_is_answered_and_measured_beside_the_run_and_the_mean_tree_comes_last(
    visit, tmp_path
):
    visitor = visit("/")
    page = visitor.page
    proof, tick = page.locator("#watch-view .ds-proof"), page.locator("#watch-view .ds-tick")
    more, why = page.locator("#watch-view .ds-proof-more"), page.locator(".ds-speed-why")
    page.wait_for_selector(KNOWN)
    assert " one by one (" in why.inner_text(), "a recorded example answers at once"
    assert re.search(r"\d×|as fast", page.inner_text(".ds-speed strong"))
    visitor.choose_example("Temperature 0.8, by tree")
    proof.get_by_text("96 tokens").wait_for()
    assert not tick.is_visible() and "distribution of texts" in more.inner_text()
    visitor.choose_example(preset("edit-lookup").title)
    tick.wait_for()
    trace = read_trace(trace_text("edit-lookup"))
    gain = sum(len(step["output"]["tokens"]) for step in trace.steps) / len(trace.steps)
    why.get_by_text(f"{gain:.1f} tokens take").wait_for()
    visitor.pick("dyspec")
    visitor.set_number("max_new_tokens", 16)
    assert visitor.run() == "done"
    before = visitor.trace()
    page.wait_for_function(
        "!document.querySelector('.ds-speed-why').textContent.includes('Recorded')"
    )
    page.wait_for_selector(KNOWN)
    assert "Recorded" not in why.inner_text(), "measured here"
    tick.wait_for()
    wait_figures(page)
    page.get_by_text("The run’s mean tree").wait_for()
    expect(page.locator(DRAWN)).to_have_count(5)
    assert titles(page)[-1] == "The run’s mean tree"
    assert visitor.trace() == before, "measuring leaves the trace alone"
    with page.expect_download() as download:
        page.click("#save-graphml")
    file = tmp_path / "mean.graphml"
    download.value.save_as(file)
    assert download.value.suggested_filename == "draftscope-dyspec.graphml"
    graph, ours = nx.read_graphml(file), mean_tree(read_trace(before))
    assert len(graph) == len(ours)
    assert graph.nodes["root"]["kept"] == len(read_trace(before).steps)
    visitor.set_number("seed", -5)
    assert visitor.run() == "error"
    assert page.locator(KNOWN).count(), "a mistake leaves the answer as it was"
    visitor.go(f"{SHORT}&drafter=chain&verifier=sampler_match&t=0.8&seed=3")
    covered(page, "the drafter")
    assert visitor.run() == "done"
    more.get_by_text("plain decoding, same seed").wait_for()
    assert "and the same text." in proof.inner_text() and tick.is_visible()
    visitor.pick("none")
    assert visitor.run() == "done"
    wait_figures(page)
    page.locator("#save-graphml").wait_for(state="hidden")
    assert not page.locator(".ds-speed").is_visible(), "nothing to be measured against"


ASKING = """() => {
  const { proofPart, room } = DraftscopePage, [later, never] = [setTimeout, clearTimeout];
  const asked = [], due = new Map(), of = "the text", told = (measuring) => JSON.stringify({ of, checked: null, measuring });
  const c = { props: { value: told(true) }, trigger: (event) => asked.push(event), watch: (_, hear) => { c.hear = hear; } };
  const pass = () => [...due].forEach(([number, call]) => { due.delete(number); call(); });
  room("watch").view = { prove() {}, model: { summary: { text: of } } };
  globalThis.setTimeout = (call) => { due.set(due.size + 1, call); return due.size; };
  globalThis.clearTimeout = (number) => due.delete(number);
  try {
    proofPart(c);
    const counts = [asked.length];
    for (const measuring of [true, false, false]) {
      pass();
      counts.push(asked.length);
      c.props.value = told(measuring);
      c.hear();
    }
    return counts;
  } finally {
    Object.assign(globalThis, { setTimeout: later, clearTimeout: never });
    room("watch").view = null;
  }
}"""
"""How often the page has asked, each time after the time that it waits has passed; the second answer is the last."""


def test_the_page_asks_whether_it_is_faster_until_it_is_told(scripts):
    assert scripts.evaluate(ASKING) == [0, 1, 2, 2]


DRAWN_WHEN_SEEN = """async () => {
  const { drawFigures, feed, figuresOf, room } = DraftscopePage, here = async (top) => {
    scrollTo(0, top);
    await new Promise((then) => new IntersectionObserver(then).observe(place));
    await new Promise(requestAnimationFrame);   // other observers are told in the same frame
    await new Promise((then) => setTimeout(then));
  };
  const [space, place, element] = ["div", "div", "div"].map((name) => document.createElement(name));
  space.style.height = "5000px";
  place.className = "pg-figures-place";
  place.style.height = "300px";
  place.append(element);
  document.body.append(space, place);
  const c = { element, props: { value: "" }, watch() {}, trigger: () => { asked += 1; } }, counts = [];
  let asked = 0, runs = 0;
  const finish = () => {
    const text = `a run ${runs++}`;
    feed("compare", `{"kind": "run", "lane": "${text}"}\\n{"kind": "summary", "text": "${text}"}\\n`);
  };
  room("compare").view = { feed() {}, setState() {} };
  try {
    figuresOf("compare", c);
    finish();
    for (const top of [0, 5000, 0]) {
      await here(top);
      counts.push(asked);
      finish();
      counts.push(asked);
    }
    drawFigures("compare");
    return [...counts, asked];
  } finally {
    space.remove();
    place.remove();
    Object.assign(room("compare"), { view: null, trace: "", heard: [] });
  }
}"""
"""How often figures were asked for: above them, before and after another run ends; over them, likewise; above them again; and
when another part of the page asks."""


def test_figures_are_drawn_only_where_the_visitor_sees_them(scripts):
    assert scripts.evaluate(DRAWN_WHEN_SEEN) == [0, 0, 1, 2, 2, 2, 3]


CONTRAST = """() => {
  const paint = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const light = (colour) => {
    paint.fillStyle = colour;
    paint.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...paint.getImageData(0, 0, 1, 1).data].map((byte) => byte / 255)
      .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const card = getComputedStyle(document.querySelector('#watch-figures > .block:not(.pg-lead-block)')).backgroundColor;
  const all = [...document.querySelectorAll('#watch-figures .main-svg text')].map((text) => {
    const two = [light(getComputedStyle(text).fill), light(card)].sort((a, b) => b - a);
    return (two[0] + 0.05) / (two[1] + 0.05);
  });
  return [all.length, Math.min(...all)];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_in_figures_can_be_read_and_nothing_lies_over_them(visit, scheme):
    visitor = visit(f"/?n=8&__theme={scheme}", color_scheme=scheme, **PHONE)
    page = visitor.page
    assert visitor.run("Once upon a time") == "done"
    wait_figures(page)
    words, least = page.evaluate(CONTRAST)
    assert words > 20 and least >= 4.5
    assert not page.locator("#watch-figures .modebar:visible").count()


def test_a_prompt_of_one_line_box_says_how_many_lines_it_has(scripts):
    told = """(prompt) => { DraftscopePage.countLines('compare', prompt);
      return document.documentElement.style.getPropertyValue('--compare-lines'); }"""
    given = ["Edit: a\nText: b\nOutput:", "One line.\n", "", None]
    found = [scripts.evaluate(told, prompt) for prompt in given]
    assert found == ['"line 1 of 3"', "none", "none", "none"]
