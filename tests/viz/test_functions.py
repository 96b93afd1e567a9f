"""Tables for the pure functions of the drawing code: an expression and what it must give. All are evaluated on one page."""

from pathlib import Path

import pytest

WORDS = {
    "a space is seen": ("Draftscope.visible(' dog')", "␣dog"),
    "line ends and tabs are seen": (r"Draftscope.visible('\r\n\t')", "␍⏎⇥"),
    "special tokens go by their names": (
        "['<|endoftext|>', '</s>', '<|im_start|>', '<b>'].map(Draftscope.visible)",
        ["⟨end⟩", "⟨end⟩", "⟨im_start⟩", "<b>"],
    ),
    "an empty piece is seen": ("Draftscope.visible('')", "∅"),
    "a direction mark is written as its code": (r"Draftscope.visible('\u202eabc')", "‹202e›abc"),
    "a zero is written as its code": (r"Draftscope.visible('\u0000')", "‹0000›"),
    "running text keeps spaces and line ends": (r"Draftscope.running(' a\nb')", " a\nb"),
    "running text shows what would turn it": (r"Draftscope.running('\u202ea')", "‹202e›a"),
    "line separators break running text": (r"Draftscope.running('a\u2028b')", "a\nb"),
    "short texts stay": ("Draftscope.shorten('abc', 3)", "abc"),
    "long texts are cut": ("Draftscope.shorten('abcd', 3)", "ab…"),
    "no character is cut in two": ("Draftscope.shorten('😀😀😀', 2)", "😀…"),
    "quotes": ("Draftscope.quote(' dog')", "‘␣dog’"),
    "no pieces, nothing to mend": ("Draftscope.mend([])", []),
    "whole characters need no mending": ("Draftscope.mend(['a', '€'])", ["a", "€"]),
    "a stray byte stays": ("Draftscope.mend(['⟨a9⟩', 'x'])", ["⟨a9⟩", "x"]),
    "a byte in the middle of a piece stays": ("Draftscope.mend(['a⟨c3⟩b', 'c'])", ["a⟨c3⟩b", "c"]),
    "two bytes make one letter": ("Draftscope.mend(['⟨c3⟩', '⟨a9⟩'])", ["", "é"]),
    "unknown probability": ("Draftscope.prob(null)", "–"),
    "certainty": ("[0, 1].map(Draftscope.prob)", ["0", "1"]),
    "usual probabilities": ("[0.414, 0.5].map(Draftscope.prob)", ["0.41", "0.50"]),
    "small probabilities": (
        "[0.004, 0.00005].map(Draftscope.prob)",
        ["0.004", "under 0.0001"],
    ),
    "large probabilities": (
        "[0.9975, 0.99999].map(Draftscope.prob)",
        ["0.9975", "over 0.9999"],
    ),
    "milliseconds": (
        "[0.126, 12.34, 123.4, 12345].map(Draftscope.ms)",
        ["0.13 ms", "12.3 ms", "123 ms", "12.3 s"],
    ),
    "one and many": (
        "[1, 2].map((n) => Draftscope.plural(n, 'token'))",
        ["1 token", "2 tokens"],
    ),
    "numbers of exhibits": (
        "[3, 1234, 0.4, 12.345, 345.6, 0.00421, 0.00004, -2.5e9, 0].map(Draftscope.number)",
        ["3", "1234", "0.40", "12.35", "346", "0.0042", "4.0e-5", "-2.5e+9", "0"],
    ),
    "cells of exhibits": (
        "[null, true, ' dog', 0.5, {token: 3, piece: ' dog'}].map(Draftscope.cellText)",
        ["–", "yes", " dog", "0.50", "␣dog"],
    ),
    "crowds": ("[1, 28, 29, 72, 73].map((n) => Draftscope.crowdOf(n))", [0, 0, 1, 1, 2]),
    "crowds on a small canvas": (
        "[28, 29, 256].map((n) => Draftscope.crowdOf(n, true))",
        [0, 3, 3],
    ),
}

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

READER = {
    "a growing string is read on": (r"""toy.read('{}\n', '{}\n{}\n')""", [[0, 1, 0], [0, 1, 0]]),
    "half a line waits": (r"""toy.read('{"a"', '{"a":1}\n')""", [[0, 0, 0], [0, 1, 0]]),
    "the same again changes nothing": (r"""toy.read('{}\n', '{}\n')""", [[0, 1, 0], [0, 0, 0]]),
    "another string begins anew": (r"""toy.read('{}\n', '[]\n{}\n')""", [[0, 1, 0], [1, 2, 0]]),
    "empty lines are passed over": (r"""toy.read('\n  \n\r\n{}\r\n')""", [[0, 1, 0]]),
    "a broken line is told, the next is read": (r"""toy.read('{"a":\n{}\n')""", [[0, 1, 1]]),
    "numbers and null are no lines": (r"""toy.read('3\nnull\n"x"\n')""", [[0, 0, 1]]),
}

STEP = "toy.step([[-1, 'accepted'], [-1, 'rejected'], [0, 'ignored']], ['n0', 'x'])"
BARE = "toy.step([], ['y'])"
MODEL = f"toy.model({STEP}, {BARE}, {STEP})"

TRACE = {
    "steps count their tokens": (f"{MODEL}.tokens", 5),
    "tokens know their steps": (
        f"((m) => [0, 1, 2, 3, 4].map(m.stepOfIndex))({MODEL})",
        [0, 0, 1, 2, 2],
    ),
    "no step, no answer": ("toy.model().stepOfIndex(0)", None),
    "the path is what was kept": (f"{MODEL}.steps[0].view.path", [0]),
    "the last token hangs on the path": (f"{MODEL}.steps[0].view.final.parent", 0),
    "without a draft it hangs on the root": (f"{MODEL}.steps[1].view.final.parent", -1),
    "a cut step has no last token": (
        "toy.model(toy.step([[-1, 'accepted']], ['n0'], 'none')).steps[0].view.final",
        None,
    ),
    "a root is the last token before": (
        f"((m) => [1, 2].map(m.rootPiece))({MODEL})",
        ["x", "y"],
    ),
    "the first root is the prompt's end": (
        f"toy.model({{kind: 'run', schema: 1, prompt: {{pieces: ['a', 'b']}}}}, {STEP}).rootPiece(0)",
        "b",
    ),
    "kept and own tokens are told apart": (
        f"((m) => [0, 1].map((j) => [m.outputStatus(m.steps[0], j), m.outputNode(m.steps[0], j)]))({MODEL})",
        [["accepted", 0], ["bonus", "final"]],
    ),
    "a step without nodes is told": (
        "((m) => [Boolean(m.trouble), m.steps.length])(toy.model({kind: 'step'}))",
        [True, 0],
    ),
    "another version is told": (
        "Boolean(toy.model({kind: 'run', schema: 2, prompt: {}}).trouble)",
        True,
    ),
    "unknown lines are passed over": ("toy.model({kind: 'news'}).trouble", None),
    "times add up": (
        "toy.model(toy.step([], ['a'], 'bonus', {draft: 1, verify: 2}), toy.step([], ['b'], 'bonus', {verify: 4})).milliseconds",
        7,
    ),
    "finished steps at a moment": (
        "((m) => [0, 2.9, 3, 99].map((ms) => Draftscope.stepsBy(m, ms)))(toy.model(toy.step([], ['a'], 'bonus', {verify: 3}), toy.step([], ['b'], 'bonus', {verify: 4})))",
        [0, 0, 1, 2],
    ),
    "a coin below is kept": (
        "[[0.3, 0.5], [0.5, 0.5], [null, 1], [null, 0]].map(([coin, accept]) => Draftscope.kept({coin, accept}))",
        [True, False, True, False],
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
    "a step in words": (
        f"Draftscope.stepSentence({MODEL}.steps[0])",
        "3 drafted, 1 kept and the target added ‘x’: 2 tokens in one pass.",
    ),
    "sources in words": (
        "['context 35', 'context 17:20', 'block 6', 'draft model'].map(Draftscope.sourceWords)",
        [
            "copied from token 36 of the text",
            "copied from tokens 18 to 20 of the text",
            "place 6 of the drafted block",
            "from draft model",
        ],
    ),
    "a step that ended with a refusal in words": (
        "Draftscope.stepSentence(Draftscope.enrich(toy.step([[-1, 'rejected']], ['x'], 'recovered'), 0))",
        "1 drafted, 0 kept, then the target wrote ‘x’ instead: 1 token in one pass.",
    ),
    "a proposal says nothing of p": (
        "((step) => [null, 1].map((node) => Draftscope.proposal(step, node)))(Draftscope.enrich(toy.step([[-1, 'accepted', 0.9, 0.5], [-1, 'rejected', 0.1]], ['n0']), 0))",
        [
            "Proposed as the next token: ‘n0’ (q 0.50), ‘n1’. The target has not judged the draft yet.",
            "‘n1’ is proposed. The target has not judged it yet.",
        ],
    ),
    "a step without a draft in words": (
        f"Draftscope.stepSentence({MODEL}.steps[1])",
        "Nothing drafted; the target wrote ‘y’.",
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

REFUSED = "[[-1, 'accepted'], [0, 'accepted'], [0, 'rejected']]"
WEAK = "[[-1, 'rejected']]"
MERRY = "[[-1, 'accepted'], [0, 'accepted'], [1, 'accepted']]"

TELLING = {
    "a refusal, a fork and two kept tokens first": (
        f"toy.telling({WEAK}, {REFUSED}, {MERRY}, {WEAK}, [])",
        1,
    ),
    "the latest of several": (f"toy.telling({REFUSED}, {REFUSED}, {WEAK})", 1),
    "a refusal before a long path": (f"toy.telling({MERRY}, {WEAK}, {MERRY})", 1),
    "any draft before none": (f"toy.telling([], {MERRY}, [], [])", 1),
    "the end of plain decoding": ("toy.telling([], [])", 1),
    "no step": ("toy.telling()", -1),
    "the reader's step is kept if it refuses and forks": (
        f"[0, 1, 2, 3, -1].map((own) => toy.toShow(own, {REFUSED}, {WEAK}, {MERRY}, {REFUSED}))",
        [0, 3, 3, 3, 3],
    ),
    "where nothing forks, a refusal is enough": (
        f"[0, 1].map((own) => toy.toShow(own, {WEAK}, {MERRY}, {WEAK}))",
        [0, 2],
    ),
}

WAITING = {
    "verdicts come in the order in which they were given": (
        f"[0, 1, 2, 3].map((told) => toy.waits({REFUSED}, 'judge', told))",
        [[0, 1, 2], [1, 2], [2], []],
    ),
    "what nobody judges waits for the last of them": (
        "[1, 2].map((told) => toy.waits([[-1, 'accepted'], [-1, 'ignored'], [0, 'rejected']], 'judge', told))",
        [[1, 2], []],
    ),
    "all wait while they are drafted, none when it is over": (
        f"['draft', 'commit', null].map((stage) => toy.waits({WEAK}, stage))",
        [[0], [], []],
    ),
}

OPENING = "toy.opening({drafted: [3, 0, 3, 3, 3], drive: (player) => player.play()})"

PLAYER = {
    "an opening explains three drafts, then goes on; its pace changes once": (
        f"{OPENING}.paces",
        ["explain", "explain", "explain", "explain", "slow"],
    ),
    "where nothing is drafted at first there is nothing to explain yet": (
        "toy.opening({drafted: [0, 0, 3, 3], drive: (player) => player.play()}).paces",
        ["slow", "slow", "explain", "explain"],
    ),
    "it ends at the last step and goes nowhere else": (f"{OPENING}.rest", [4, None]),
    "what is done to the time is said, and that it changes": (
        "toy.opening({drafted: [3, 3, 3, 3], drive: (player) => player.play()}).words",
        [
            *["Replayed slowly, each step explained; the times are real."] * 3,
            "Replayed slowly, from here one step a second; the times are real.",
        ],
    ),
    "a verdict stands long enough to be read": (f"{OPENING}.commits[0] >= 3900", True),
    "the reader's pace wins": (
        "((it) => [it.paces, it.rest])(toy.opening({drafted: [3, 3, 3], drive: (player) => { player.play(); player.setPace('slow'); }}))",
        [["slow", "slow", "slow"], [2, None]],
    ),
    "who has gone to a step is not taken elsewhere": (
        "toy.opening({drafted: [3, 3, 3], drive: (player) => { player.play(); player.seek(0); player.play(); }}).rest",
        [2, None],
    ),
    "four steps a second": (
        "toy.play({pace: 'brisk', totals: [1, 1]})",
        [[10, 0, None], [260, 1, None]],
    ),
    "as fast as it ran": (
        "toy.play({pace: 'real', totals: [100, 50, 30]})",
        [[10, 0, None], [110, 1, None], [160, 2, None]],
    ),
    "no step is waited for longer than two seconds": (
        "toy.play({pace: 'real', totals: [9000, 1]})",
        [[10, 0, None], [2010, 1, None]],
    ),
    "live: a step a frame": (
        "toy.play({live: true, totals: [500, 500, 500], drive: (player) => player.follow()}).slice(0, 3)",
        [[10, 0, None], [20, 1, None], [30, 2, None]],
    ),
    "judging tells one verdict after the other": (
        "toy.play({pace: 'slow', totals: [1], judgements: 2}).filter(([, , stage]) => stage === 'judge').map(([, , , told]) => told)",
        [0, 1, 2],
    ),
    "more verdicts than time come in groups": (
        "toy.play({pace: 'slow', totals: [1], judgements: 16}).filter(([, , stage]) => stage === 'judge').map(([, , , told]) => told)",
        [0, 4, 8, 12, 16],
    ),
    "slowly: drafted, judged, committed": (
        "toy.play({pace: 'slow', totals: [1]}).map(([at, , stage]) => [at, stage])",
        [[10, "draft"], [310, "judge"], [630, "commit"], [1010, None]],
    ),
    "nothing drafted, nothing to judge": (
        "toy.play({pace: 'slow', totals: [1], drafted: 0}).map(([, , stage]) => stage)",
        ["commit", None],
    ),
    "looking for a step stays within the run": (
        "toy.play({totals: [1, 1, 1], drive: (player) => { player.seek(99); player.move(1); player.seek(-5); }}).map(([, step]) => step)",
        [2, 2, 0],
    ),
    "no step, nothing to play": ("toy.play({totals: []})", []),
}

TABLES = {
    "columns": {
        "each is as wide as its widest chip": (
            "Draftscope.columns({w: 40}, [{w: 20}, {w: 60}, {w: 30}], [1, 1, 2])",
            {"middles": [0, 80, 155], "right": 170},
        ),
        "a root alone": ("Draftscope.columns({w: 40}, [], [])", {"middles": [0], "right": 20}),
    },
    "framing": {
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
    },
    "words": WORDS,
    "layout": LAYOUT,
    "reader": READER,
    "trace": TRACE,
}
TABLES |= {
    "picture": PICTURE,
    "telling": TELLING,
    "waiting": WAITING,
    "player": PLAYER,
    "exhibits": EXHIBITS,
}
CASES = {f"{name}: {case}": row for name, rows in TABLES.items() for case, row in rows.items()}


@pytest.fixture(scope="module")
def given(script):
    """What every expression gives, by case."""
    script.add_script_tag(content=(Path(__file__).parent / "functions.js").read_text("utf-8"))
    tries = ", ".join(f"() => ({expression})" for expression, _ in CASES.values())
    results = script.evaluate(
        f"[{tries}].map((work) => {{ try {{ return work(); }} catch (e) {{ return String(e); }} }})"
    )
    return dict(zip(CASES, results, strict=True))


@pytest.mark.parametrize("case", CASES)
def test_it_gives(given, case):
    assert given[case] == CASES[case][1]
