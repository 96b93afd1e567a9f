"""The positions and sizes of drawn things; see ``tests.viz.tables``."""

import pytest

from tests.viz.tables import cases

LAYOUT = {
    "a root alone": ("toy.places([])", []),
    "a chain is straight": ("toy.places([-1, 0, 1])", [0, 0, 0]),
    "two children stand about the root": ("toy.places([-1, -1])", [-5, 5]),
    "gaps keep them apart": ("toy.places([-1, -1], 10, 6)", [-8, 8]),
    "a parent stands in the middle of its children": (
        "((y) => [y[0] - (y[2] + y[3]) / 2, y[0] + y[1]])(toy.places([-1, -1, 0, 0]))",
        [0, 0],
    ),
    "a thousand levels are no trouble": (
        "toy.places(Array.from({length: 1000}, (_, i) => i - 1)).every((y) => y === 0)",
        True,
    ),
}

COLUMNS = {
    "each is as wide as its widest chip": (
        "Draftscope.columns({w: 40}, [{w: 20}, {w: 60}, {w: 30}], [1, 1, 2])",
        {"middles": [0, 80, 155], "right": 170},
    ),
    "a root alone": ("Draftscope.columns({w: 40}, [], [])", {"middles": [0], "right": 20}),
}

FRAMING = {
    "what fits is shown as large as it may be, a little left of the middle": (
        "toy.framed(0, 100, -10, 10, 50)",
        {"k": 1, "x": 35, "y": 100},
    ),
    "what is wide shrinks until it fits": (
        "toy.framed(-20, 380, 0, 10, 0)",
        {"k": 0.75, "x": 15, "y": 96.25},
    ),
    "what could not be read then is cut before its focus": (
        "toy.framed(0, 1000, 0, 10, 700)",
        {"k": 0.5, "x": -110, "y": 97.5},
    ),
    "but not before its beginning": (
        "toy.framed(0, 1000, 0, 10, 100).x",
        0,
    ),
    "nor behind its end": (
        "toy.framed(0, 1000, 0, 10, 1000).x",
        -200,
    ),
    "on a small canvas what is tall is cut above and below its focus": (
        "toy.framed(0, 100, -500, 500, 0, {level: 200, tall: 0.5})",
        {"k": 0.5, "x": 43.75, "y": 0},
    ),
    "what is tall shrinks as it must": (
        "toy.framed(0, 100, 0, 1000, 0).k",
        0.2,
    ),
}

PICTURE = {
    "an icicle's widths are probabilities": (
        "Draftscope.placeIcicle(Draftscope.enrich(toy.step([[-1, 'accepted', 0.5], [0, 'ignored', 0.5]], ['n0'], 'none'), 0), 'p', 0).w",
        [0.5, 0.25],
    ),
    "no cell is too thin": (
        "Draftscope.placeIcicle(Draftscope.enrich(toy.step([[-1, 'ignored', 0]], [], 'none'), 0), 'p', 0.1).w",
        [0.1],
    ),
    "without q an icicle takes p": (
        "Draftscope.placeIcicle(Draftscope.enrich(toy.step([[-1, 'ignored', 0.5]], [], 'none'), 0), 'q', 0).w",
        [0.5],
    ),
    "the last token is as wide as its p, and the rest stays empty": (
        "Draftscope.placeIcicle(Draftscope.enrich(toy.told([[-1, 'rejected', 0.25]], ['x'], 'recovered', {p: [[0, 'x', 0.5]]}), 0), 'p', 0)",
        {"x": [0, 0.25], "w": [0.25, 0.5]},
    ),
    "the last token takes its q where there is one": (
        "Draftscope.placeIcicle(Draftscope.enrich(toy.told([], ['x'], 'bonus', {p: [[0, 'x', 0.5]], q: [[0, 'x', 0.125]]}), 0), 'q', 0).w",
        [0.125],
    ),
    "bars are sorted by p, the chosen token among them": (
        "Draftscope.barRows({p: [[1, 'a', 0.9], [2, 'b', 0.1]], q: [[3, 'c', 0.8]]}, 2, 'b', 0.1, null).map((row) => row.piece)",
        ["a", "b", "c"],
    ),
    "the chosen token has a row, however unlikely": (
        "Draftscope.barRows({p: [...'abcdefgh'].map((piece, i) => [i, piece, 0.1 - i / 100])}, 7, 'h', 0.03, null).at(-1).piece",
        "h",
    ),
    "what was cut is struck": (
        "Draftscope.barRows({p: [[1, 'a', 1], [2, 'b', 0]]}, null, '', null, null).map((row) => row.cut)",
        [False, True],
    ),
}

SPAN = "((lane, start, end) => ({lane, what: lane, start, end}))"

EXHIBITS = {
    "sources are grouped": (
        "['context 17:20', 'context 24', 'draft model', 'eagle3', 'gram 2, 3', ''].map(Draftscope.sourceGroup)",
        ["context", "context", "draft model", "eagle3", "gram", ""],
    ),
    "lanes overlap where two of them work": (
        f"((s) => Draftscope.overlap([s('draft', 0, 4), s('verify', 3, 6), s('draft', 5, 7)]))({SPAN})",
        {"start": 0, "end": 7, "both": 2, "pieces": [[3, 4], [5, 6]]},
    ),
    "one lane does not overlap with itself": (
        f"((s) => Draftscope.overlap([s('draft', 0, 4), s('draft', 1, 3)]).both)({SPAN})",
        0,
    ),
    "touching is no overlap": (
        f"((s) => Draftscope.overlap([s('draft', 0, 4), s('verify', 4, 6)]).both)({SPAN})",
        0,
    ),
    "three lanes overlap once": (
        f"((s) => Draftscope.overlap([s('a', 0, 4), s('b', 0, 4), s('c', 0, 4)]).both)({SPAN})",
        4,
    ),
    "odd spans are left out": (
        "Draftscope.spansOf({spans: [null, 3, {lane: 'a', start: 2, end: 1}, {lane: 3, start: 0, end: 1}, {lane: 'a', start: 0, end: 1e300}, {lane: 'a', start: 0, end: 1}]}).length",
        1,
    ),
    "room for exhibits": (
        "[[], [{kind: 'gauge'}], [{kind: 'words', lines: [1, 2, 3, 4]}], [{kind: 'matrix'}], [null]].map(Draftscope.roomOf)",
        [0, 1, 2, 2, 2],
    ),
}

CASES = cases(layout=LAYOUT, columns=COLUMNS, framing=FRAMING, picture=PICTURE, exhibits=EXHIBITS)


@pytest.mark.parametrize("case", CASES)
def test_it_gives(given, case):
    assert given[case] == CASES[case][1]
