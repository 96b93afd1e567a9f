"""Exhibits in a trace: they keep to the contract, show token ids as pieces, and hold no NaN or infinity."""

import json
import math

import pytest

from engine.core.exhibits import (
    Choice,
    Cloud,
    Clouds,
    Curve,
    Exhibit,
    Gauge,
    Lattice,
    Layer,
    Layers,
    Matrix,
    Panel,
    Series,
    Table,
    Token,
    Words,
)

NAN, INFINITY = math.nan, math.inf
CAT = {"token": 7, "piece": "<7>"}

CASES = [
    (
        Words(title="Match", lines=["plain", ["see ", Token(7), "."]]),
        {"kind": "words", "title": "Match", "lines": ["plain", ["see ", CAT, "."]]},
    ),
    (
        Table(title="T", columns=["a", "b"], rows=[[Token(7), 0.5], [None, True], [NAN, 3]]),
        {
            "kind": "table",
            "title": "T",
            "columns": ["a", "b"],
            "rows": [[CAT, 0.5], [None, True], [None, 3]],
        },
    ),
    (
        Matrix(title="M", rows=["r", 2], columns=[Token(7)], values=[[1 / 3], [-INFINITY]]),
        {
            "kind": "matrix",
            "title": "M",
            "rows": ["r", 2],
            "columns": [CAT],
            "values": [[0.3333333], [None]],
        },
    ),
    (
        Lattice(title="L", columns=[[Choice(7, 0.25), Choice(8, NAN)]], path=[1]),
        {
            "kind": "lattice",
            "title": "L",
            "columns": [[CAT | {"p": 0.25}, {"token": 8, "piece": "<8>", "p": None}]],
            "path": [1],
        },
    ),
    (
        Layers(title="Y", layers=[Layer("run", 0.5, "first"), Layer("skipped")]),
        {
            "kind": "layers",
            "title": "Y",
            "layers": [
                {"state": "run", "value": 0.5, "label": "first"},
                {"state": "skipped", "value": None},
            ],
        },
    ),
    (
        Gauge(title="G", value=NAN, maximum=8.0, mark=2.0, unit="tokens"),
        {
            "kind": "gauge",
            "title": "G",
            "value": None,
            "minimum": 0.0,
            "maximum": 8.0,
            "mark": 2.0,
            "unit": "tokens",
        },
    ),
    (
        Curve(title="C", x=[1, 2], series=[Series("s", [0.1, INFINITY])], x_label="size"),
        {
            "kind": "curve",
            "title": "C",
            "x": [1, 2],
            "series": [{"name": "s", "y": [0.1, None]}],
            "x_label": "size",
            "y_label": "",
            "mark": None,
        },
    ),
    (
        Clouds(title="P", panels=[Panel("draft", [Cloud("accepted", [[0.5, NAN]])])]),
        {
            "kind": "clouds",
            "title": "P",
            "panels": [
                {"name": "draft", "clouds": [{"name": "accepted", "points": [[0.5, None]]}]}
            ],
        },
    ),
]


@pytest.mark.parametrize(("exhibit", "expected"), CASES, ids=lambda one: getattr(one, "kind", ""))
def test_each_kind_as_the_contract_has_it(exhibit, expected):
    found = exhibit.to_dict(lambda token: f"<{token}>")
    assert found == expected
    assert json.loads(json.dumps(found, allow_nan=False)) == expected


def test_every_kind_is_here():
    assert {type(exhibit) for exhibit, _ in CASES} == set(Exhibit.__subclasses__())


def test_a_note_and_a_meter_are_said_only_where_there_are_any():
    found = Words(title="W", note="One sentence.", meter=True, lines=[]).to_dict(str)
    assert (found["note"], found["meter"]) == ("One sentence.", True)
    assert not {"note", "meter"} & Words(title="W", lines=[]).to_dict(str).keys()
