"""The figures at the end of a run."""

import json
import re
from urllib.parse import urlencode

import networkx as nx
import pytest

from engine.trace import read_trace
from presets import preset
from presets.conditions import finished
from tests.app.test_page import PHONE
from tests.app.visitor import ENDLESS, SHORT
from viz.mean_tree import mean_tree


def titles(page) -> list[str]:
    shown = page.locator("#watch-figures .js-plotly-plot:visible .gtitle")
    return shown.all_text_contents()


@pytest.mark.journey
def test_plain_decoding_is_measured_beside_the_run_and_the_mean_tree_comes_last(visit, tmp_path):
    visitor = visit()
    page = visitor.page
    visitor.pick("dyspec")
    assert visitor.run() == "done"
    before = visitor.trace()
    page.wait_for_selector("#speed-figure .js-plotly-plot .gtitle")
    assert "measured just now on this machine" in page.inner_text("#speed-figure .pg-measured")
    shown = titles(page)
    assert shown[0] == "Speed against plain decoding"
    assert shown[-1] == "The run’s mean tree"
    assert len(shown) == 6
    assert visitor.trace() == before, "measuring leaves the trace alone"
    assert not page.locator("#plain-stop").is_visible()
    with page.expect_download() as download:
        page.click("#save-graphml")
    file = tmp_path / "mean.graphml"
    download.value.save_as(file)
    assert download.value.suggested_filename == "draftscope-dyspec.graphml"
    graph, ours = nx.read_graphml(file), mean_tree(read_trace(before))
    assert len(graph) == len(ours)
    assert graph.nodes["root"]["kept"] == len(read_trace(before).steps)


SPOKEN = """() => {
  window.spoken = [];
  const look = () => {
    const line = document.querySelector('#speed-figure .pg-measured');
    window.dimmed ||= document.querySelector('#watch-figures')?.hasAttribute('data-old');
    if (!line || !line.checkVisibility() || line.textContent === window.spoken.at(-1)) return;
    window.spoken.push(line.textContent);
  };
  new MutationObserver(look).observe(document.body, {childList: true, subtree: true, attributes: true});
}"""
"""Record the text of the speed figure's card while the text is visible."""
MEASURED = """times => {
  const came = window.spoken.filter((words) => words.includes('just now')).length;
  return came === times && window.spoken.at(-1).includes('just now');
}"""


def test_a_second_run_is_measured_anew_and_a_mistake_leaves_the_figures_as_they_were(visit):
    visitor = visit()
    page = visitor.page
    page.evaluate(SPOKEN)
    for times, prompt in enumerate(("Once upon a time", "The little dog"), start=1):
        assert visitor.run(prompt) == "done"
        page.wait_for_function(MEASURED, arg=times)
        page.wait_for_selector("#speed-figure .js-plotly-plot .gtitle")
    assert page.evaluate("window.dimmed"), "while the second run went on"
    assert not page.locator("#watch-figures[data-old]").count()
    spoken = page.evaluate("window.spoken")
    assert "" not in spoken
    assert sum("is measured next" in words for words in spoken) == 2
    before = titles(page)
    visitor.set_number("seed", -5)
    assert visitor.run() == "error"
    page.wait_for_timeout(1500)  # time for changes that must not come
    assert titles(page) == before
    assert page.evaluate("window.spoken") == spoken


CONTRAST = """() => {
  const paint = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const light = (colour) => {
    paint.fillStyle = colour;
    paint.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...paint.getImageData(0, 0, 1, 1).data].map((byte) => byte / 255)
      .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const card = getComputedStyle(document.querySelector('#speed-figure')).backgroundColor;
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
    page.wait_for_selector("#speed-figure .js-plotly-plot .gtitle")
    words, least = page.evaluate(CONTRAST)
    assert words > 20 and least >= 4.5
    assert not page.locator("#watch-figures .modebar:visible").count()


def test_where_others_run_plain_decoding_is_measured_on_demand(visit):
    lanes = "&".join(f"lane{number}=none" for number in range(1, 6))
    long = urlencode({"prompt": ENDLESS})
    other = visit(f"/?tab=compare&{lanes}&{long}&n=256").page
    other.wait_for_selector(".pg-racer >> nth=4")
    visitor = visit()
    page = visitor.page
    other.evaluate(
        """() => setInterval(() => {
          const race = document.getElementById('race');
          if (!race.disabled) race.click();
        }, 20)"""
    )  # one race after the other
    other.wait_for_function("DraftscopePage.stateOf('compare') === 'running'")
    said = page.locator("#speed-figure .pg-measured")
    for _ in range(4):  # between two races nobody runs, and plain decoding is measured unasked
        assert visitor.run() == "done"
        said.get_by_text(re.compile("others are running|just now")).wait_for()
        if page.is_visible("#plain-measure"):
            break
    assert "others are running" in page.inner_text("#speed-figure .pg-measured")
    assert not page.locator("#speed-figure .js-plotly-plot").is_visible()
    other.close()
    page.click("#plain-measure")
    page.wait_for_selector("#speed-figure .js-plotly-plot .gtitle")
    assert "measured just now" in page.inner_text("#speed-figure .pg-measured")
    assert not page.locator("#plain-measure").is_visible()


def test_the_tick_stands_where_the_text_was_compared(visit):
    asked = SHORT + "&drafter=chain&verifier=sampler_match&t=0.8&seed=3"
    visitor = visit(asked, reduced_motion="reduce")
    page = visitor.page
    proof, tick = page.locator("#watch-view .ds-proof"), page.locator("#watch-view .ds-tick")
    assert visitor.run() == "done"
    tick.wait_for()
    assert "and the same text, " in proof.inner_text()
    more = page.locator("#watch-view .ds-proof-more")
    assert "plain decoding, same seed" in more.inner_text()
    visitor.choose_example("Temperature 0.8")
    proof.get_by_text("96 tokens").wait_for()
    assert not tick.is_visible() and "distribution of texts" in more.inner_text()
    visitor.choose_example(preset("edit-lookup").title)
    tick.wait_for()
    ratio = raced_ratio("race-edit", "prompt_lookup")
    assert f"and the same text, {ratio} where it was recorded." in proof.inner_text()


def raced_ratio(race: str, lane: str) -> str:
    """The words for a lane's speed against plain decoding in the finished race."""
    rates = {name: trace.summary["tokens_per_second"] for name, trace in finished(race).items()}
    ratio = rates[lane] / rates["none"]
    if ratio >= 1.05:
        return f"{ratio:.1f} times as fast as plain decoding"
    return (
        "just as fast as plain decoding"
        if ratio > 0.95
        else f"but at {ratio:.2f} times the speed of plain decoding"
    )


def test_plain_decoding_has_nothing_to_be_measured_against(visit):
    visitor = visit()
    visitor.pick("none")
    assert visitor.run() == "done"
    visitor.page.wait_for_selector("#watch-figures .js-plotly-plot .gtitle")
    visitor.page.wait_for_timeout(1000)
    assert not visitor.page.locator("#speed-figure").is_visible()
    assert not visitor.page.locator("#save-graphml").is_visible()
    assert json.loads(visitor.trace().splitlines()[-1])["kind"] == "summary"
