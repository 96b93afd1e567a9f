"""Exhibits in a trace: they keep to the contract, show token ids as pieces, and hold no NaN or infinity."""

import json
import math

import pytest

from engine.core import exhibits as kinds

NAN, INFINITY = math.nan, math.inf
CAT = {"token": 7, "piece": "<7>"}

CASES = [
    (
        kinds.Words(title="Match", lines=["plain", ["see ", kinds.Token(7), "."]]),
        {"kind": "words", "title": "Match", "lines": ["plain", ["see ", CAT, "."]]},
    ),
    (
        kinds.Table(title="T", columns=["a", "b"], rows=[[kinds.Token(7), 0.5], [None, True], [NAN, 3]]),
        {"kind": "table", "title": "T", "columns": ["a", "b"], "rows": [[CAT, 0.5], [None, True], [None, 3]]},
    ),
    (
        kinds.Matrix(title="M", rows=["r", 2], columns=[kinds.Token(7)], values=[[1 / 3], [-INFINITY]]),
        {"kind": "matrix", "title": "M", "rows": ["r", 2], "columns": [CAT], "values": [[0.3333333], [None]]},
    ),
    (
        kinds.Lattice(title="L", columns=[[kinds.Choice(7, 0.25), kinds.Choice(8, NAN)]], path=[1]),
        {"kind": "lattice", "title": "L", "columns": [[CAT | {"p": 0.25}, {"token": 8, "piece": "<8>", "p": None}]], "path": [1]},
    ),
    (
        kinds.Layers(title="Y", layers=[kinds.Layer("run", 0.5, "first"), kinds.Layer("skipped")]),
        {"kind": "layers", "title": "Y", "layers": [{"state": "run", "value": 0.5, "label": "first"}, {"state": "skipped", "value": None}]},
    ),
    (
        kinds.Gauge(title="G", value=NAN, maximum=8.0, mark=2.0, unit="tokens"),
        {"kind": "gauge", "title": "G", "value": None, "minimum": 0.0, "maximum": 8.0, "mark": 2.0, "unit": "tokens"},
    ),
    (
        kinds.Curve(title="C", x=[1, 2], series=[kinds.Series("s", [0.1, INFINITY])], x_label="size"),
        {"kind": "curve", "title": "C", "x": [1, 2], "series": [{"name": "s", "y": [0.1, None]}], "x_label": "size", "y_label": "", "mark": None},
    ),
    (
        kinds.Clouds(title="P", panels=[kinds.Panel("draft", [kinds.Cloud("accepted", [[0.5, NAN]])])]),
        {"kind": "clouds", "title": "P", "panels": [{"name": "draft", "clouds": [{"name": "accepted", "points": [[0.5, None]]}]}]},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("exhibit", "expected"), CASES, ids=lambda one: getattr(one, "kind", ""))
def test_each_kind_as_the_contract_has_it(exhibit, expected):
    found = exhibit.to_dict(lambda token: f"<{token}>")
    assert found == expected
    assert json.loads(json.dumps(found, allow_nan=False)) == expected


def test_every_kind_is_here():
    assert {type(exhibit) for exhibit, _ in CASES} == set(kinds.Exhibit.__subclasses__())


def test_a_note_and_a_meter_are_said_only_where_there_are_any():
    found = kinds.Words(title="W", note="One sentence.", meter=True, lines=[]).to_dict(str)
    assert (found["note"], found["meter"]) == ("One sentence.", True)
    assert not {"note", "meter"} & kinds.Words(title="W", lines=[]).to_dict(str).keys()
