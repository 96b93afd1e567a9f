"""The figures at the end of a run."""

import json

import networkx as nx

from engine.trace import read_trace
from viz.mean_tree import mean_tree


def titles(page) -> list[str]:
    shown = page.locator("#watch-figures .js-plotly-plot:visible .gtitle")
    return shown.all_text_contents()


def test_plain_decoding_is_measured_beside_the_run_and_the_mean_tree_comes_last(visit, tmp_path):
    visitor = visit()
    page = visitor.page
    visitor.choose("drafter", "dyspec")
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


def test_where_others_run_plain_decoding_is_measured_on_demand(visit):
    lanes = "&".join(f"lane{number}=none" for number in range(1, 6))
    other = visit(f"/?tab=compare&{lanes}&n=256").page
    other.wait_for_selector(".pg-racer >> nth=4")
    visitor = visit()
    page = visitor.page
    other.click("#race")
    assert visitor.run() == "done"
    page.wait_for_selector("#plain-measure")
    assert "others are running" in page.inner_text("#speed-figure .pg-measured")
    assert not page.locator("#speed-figure .js-plotly-plot").is_visible()
    page.click("#plain-measure")
    page.wait_for_selector("#speed-figure .js-plotly-plot .gtitle")
    assert "measured just now" in page.inner_text("#speed-figure .pg-measured")
    assert not page.locator("#plain-measure").is_visible()


def test_plain_decoding_has_nothing_to_be_measured_against(visit):
    visitor = visit()
    visitor.choose("drafter", "none")
    assert visitor.run() == "done"
    visitor.page.wait_for_selector("#watch-figures .js-plotly-plot .gtitle")
    visitor.page.wait_for_timeout(1000)
    assert not visitor.page.locator("#speed-figure").is_visible()
    assert not visitor.page.locator("#save-graphml").is_visible()
    assert json.loads(visitor.trace().splitlines()[-1])["kind"] == "summary"
