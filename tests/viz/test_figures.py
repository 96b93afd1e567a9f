"""Figures and the mean tree, from traces of every style."""

import json
from xml.etree import ElementTree

import networkx as nx
import pytest

from engine.trace import read_trace
from tests.viz.builder import Toy
from tests.viz.hostile import HOSTILE
from viz.figures import acceptance_by_depth, p_against_q, race_figures, run_figures
from viz.look import COLOURS, FAMILIES, written
from viz.mean_tree import graphml, mean_tree, mean_tree_figure, slot_name, write_graphml

STYLES = ("tree", "chain", "iid", "one_hot", "none")


def trace(**settings):
    return read_trace(Toy(**settings).ndjson())


@pytest.mark.parametrize("style", STYLES)
def test_every_style_can_be_drawn(style):
    figures = run_figures(trace(style=style))
    assert {"accepted", "time"} <= figures.keys()
    assert ({"depth", "tree"} <= figures.keys()) == (style != "none")
    assert ("odds" in figures) == (style not in ("none", "one_hot")), "no q, no odds"
    for figure in figures.values():
        json.dumps(figure.to_plotly_json(), default=list)


def test_each_lane_has_a_histogram_of_its_own():
    traces = {style: trace(style=style) for style in STYLES}
    figures = race_figures(traces)
    histograms, speed = figures["accepted"], figures["speed"]
    assert len(histograms.data) == 5
    assert list(speed.data[0].text)[-1] == "1.00×"
    for bars in histograms.data:
        assert sum(bars.y) == pytest.approx(1), "shares of the lane's own steps"
    assert len({bars.yaxis for bars in histograms.data}) == 5, "a row each"


def test_a_drafter_keeps_its_colour_wherever_it_runs():
    chain, none = trace(style="chain", key="chain"), trace(style="none", key="none")
    one = race_figures({"chain": chain, "none": none})
    other = race_figures({"none": none, "chain-2": chain, "chain": chain})
    colours = [list(drawn["speed"].data[0].marker.color) for drawn in (one, other)]
    assert colours[1] == [colours[0][1], colours[0][0], colours[0][0]]
    assert [bars.marker.color for bars in other["accepted"].data] == colours[1]


def test_no_family_has_the_colour_of_a_kind_of_token():
    kinds = {COLOURS[kind] for kind in ("accepted", "rejected", "ignored", "recovered", "bonus")}
    assert len(set(FAMILIES.values())) == len(FAMILIES) and not kinds & set(FAMILIES.values())


def test_where_the_favourite_decides_p_is_not_drawn_against_q():
    points = {"accepted": [(0.5, 0.6, "x")]}
    assert [data.name for data in p_against_q(points).data] == ["p = q", "accepted"]
    greedy = p_against_q(points, greedy=True)
    assert [data.name for data in greedy.data] == ["accepted"]
    assert "temperature 0" in greedy.layout.annotations[0].text


def test_a_lane_stopped_before_its_first_token_has_no_speed():
    one, plain = trace(style="tree"), trace(style="none")
    one.summary["tokens_per_second"] = None
    bars = race_figures({"chain": one, "none": plain})["speed"].data[0]
    assert list(bars.x) == [0, plain.summary["tokens_per_second"]]
    assert list(bars.text) == ["0.00×", "1.00×"]


def test_expected_curve_is_geometric():
    one = trace(style="chain", depth=5, steps=40)
    curve = acceptance_by_depth(one).data[-1]
    rate = one.summary["acceptance_rate"]
    assert list(curve.y) == pytest.approx([rate ** (d + 1) for d in range(len(curve.y))])


def test_no_hover_text_is_markup():
    one = trace(words=list(HOSTILE), steps=40, cut=25, key="<b>key</b>")
    shown = []
    races = race_figures({"<img src=x onerror=alert(1)>": one})
    for figure in [*run_figures(one).values(), *races.values()]:
        for data in figure.data:
            shown += [str(text).replace("<br>", " ") for text in data.hovertext or []]
            shown += [str(data.name or "")] + [
                str(x) for x in (data.x if data.x is not None else [])
            ]
    assert shown
    for text in shown:
        assert "<" not in text.replace("<extra></extra>", "") and "%{" not in text
    assert all("<" not in written(text) and '"' not in written(text) for text in HOSTILE)
    # and the exported mean tree names places only
    tree = ElementTree.fromstring(graphml(mean_tree(one)))
    words = {text for element in tree.iter() for text in (element.text, *element.attrib.values())}
    assert len(words) > 10 and not words & {text for text in HOSTILE if text}


def test_the_mean_tree_counts_every_slot(tmp_path):
    one = trace(style="tree", steps=15)
    graph = mean_tree(one)
    assert nx.is_arborescence(graph)
    nodes = sum(len(step["nodes"]["token"]) for step in one.steps)
    assert sum(d["drafted"] for s, d in graph.nodes(data=True) if s) == nodes
    kept = sum(step["nodes"]["status"].count("accepted") for step in one.steps)
    assert sum(d["kept"] for s, d in graph.nodes(data=True) if s) == kept
    for slot, data in graph.nodes(data=True):
        assert (
            data["kept"] <= data["judged"] <= data["reached"] <= data["drafted"] <= 15 or not slot
        )
    file = tmp_path / "mean.graphml"
    write_graphml(graph, file)
    ElementTree.parse(file)
    again = nx.read_graphml(file)
    assert set(again.nodes) == {slot_name(slot) for slot in graph.nodes}
    assert len(mean_tree_figure(graph).data[-1].x) == len(graph)
