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
        "Draftscope.columns(40, [20, 60, 30], [1, 1, 2], 30)",
        {"middles": [0, 80, 155], "far": 170},
    ),
    "a root alone": ("Draftscope.columns(40, [], [], 30)", {"middles": [0], "far": 20}),
}

FRAMING = {
    "what fits stands a little left of the middle": (
        "toy.framed(0, 100, -10, 10, 50)",
        {"x": 35, "y": 100},
    ),
    "of what is wide the end of the walk is seen, and much before it": (
        "toy.framed(0, 1000, 0, 10, 700)",
        {"x": -460, "y": 95},
    ),
    "but not more than its beginning": ("toy.framed(0, 1000, 0, 10, 100).x", 0),
    "nor more than its end": ("toy.framed(0, 1000, 0, 10, 1000).x", -700),
    "a short step of a long run stands where the others begin": (
        "toy.framed(0, 1000, 0, 10, 200, {far: 200}).x",
        0,
    ),
    "of what is tall the height of its walk is seen": (
        "toy.framed(0, 100, -500, 500, 0, {level: 200}).y",
        -100,
    ),
    "a low step of a tall run is seen whole": (
        "toy.framed(0, 100, -150, 40, 0, {level: 30, low: -500, high: 500}).y",
        150,
    ),
    "what grows downwards has its root in the middle": (
        "toy.framed(-50, 90, -10, 150, 0, {down: true})",
        {"x": 150, "y": 10},
    ),
    "unless it needs the room beside it": (
        "toy.framed(-50, 200, -10, 300, 0, {down: true, level: 290})",
        {"x": 100, "y": -100},
    ),
    "a drawing is as large as fits, within the limits": (
        "[[600, 100], [600, 1000], [10, 10]].map(([w, h]) => Draftscope.scaleOf(w, h, {width: 300, height: 200}, {least: 0.4, most: 1.6}))",
        [0.5, 0.4, 1.6],
    ),
}

FAN = "[[-1, 'accepted'], [-1, 'ignored'], [-1, 'ignored'], [-1, 'ignored'], [-1, 'ignored']]"
DEEP = "[[-1, 'accepted'], [-1, 'ignored'], [-1, 'ignored'], [1, 'ignored'], [3, 'ignored']]"
FOLDS = {
    "where there is room, all are seen": (f"toy.folded(1000, {FAN})", [[0, 1, 2, 3, 4], []]),
    "where there is none, the ignored are one fold": (f"toy.folded(0, {FAN})", [[0], [[-1, 4]]]),
    "the first of them are seen as far as there is room": (
        f"toy.folded(35 + 2 * 27, {FAN})",
        [[0, 1], [[-1, 3]]],
    ),
    "a token alone takes no more room than a fold": (
        "toy.folded(0, [[-1, 'accepted'], [-1, 'ignored'], [0, 'rejected']])",
        [[0, 1, 2], []],
    ),
    "what is below a folded token is folded with it": (f"toy.folded(0, {DEEP})", [[0], [[-1, 4]]]),
    "an opened fold can be closed": (f"toy.folded(0, {DEEP}, [-1])", [[0, 1, 2, 3, 4], [[-1, 0]]]),
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

CASES = cases(
    layout=LAYOUT, columns=COLUMNS, framing=FRAMING, folds=FOLDS, picture=PICTURE, exhibits=EXHIBITS
)


@pytest.mark.parametrize("case", CASES)
def test_it_gives(given, case):
    assert given[case] == CASES[case][1]
