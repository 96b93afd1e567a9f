"""The model made from the lines of a trace, and the step that tells the most; see ``tests.viz.tables``."""

import pytest

from tests.viz.tables import MODEL, STEP, cases

READER = {
    "a growing string is read on": (r"""toy.read('{}\n', '{}\n{}\n')""", [[0, 1, 0], [0, 1, 0]]),
    "half a line waits": (r"""toy.read('{"a"', '{"a":1}\n')""", [[0, 0, 0], [0, 1, 0]]),
    "the same again changes nothing": (r"""toy.read('{}\n', '{}\n')""", [[0, 1, 0], [0, 0, 0]]),
    "another string begins anew": (r"""toy.read('{}\n', '[]\n{}\n')""", [[0, 1, 0], [1, 2, 0]]),
    "empty lines are passed over": (r"""toy.read('\n  \n\r\n{}\r\n')""", [[0, 1, 0]]),
    "a broken line is told, the next is read": (r"""toy.read('{"a":\n{}\n')""", [[0, 1, 1]]),
    "numbers and null are no lines": (r"""toy.read('3\nnull\n"x"\n')""", [[0, 0, 1]]),
}

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
    "a root is the last token before": (f"((m) => [1, 2].map(m.rootPiece))({MODEL})", ["x", "y"]),
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
    "the reading of the prompt comes first": (
        "((m) => [m.milliseconds, m.steps.map((s) => s.view.start), Draftscope.stepsBy(m, 5)])(toy.model({...toy.step([], ['a'], 'bonus', {verify: 3}), prefill: 5}, toy.step([], ['b'], 'bonus', {verify: 4})))",
        [12, [5, 8], 0],
    ),
    "a trace made earlier tells it at its end": (
        "((m) => [m.milliseconds, m.steps.map((s) => s.view.start)])(toy.model(toy.step([], ['a'], 'bonus', {verify: 3}), {kind: 'summary', milliseconds: {prefill: 5, total: 8}}))",
        [8, [5]],
    ),
    "the reading of the prompt counts once": (
        "toy.model({...toy.step([], ['a'], 'bonus', {verify: 3}), prefill: 5}, {kind: 'summary', milliseconds: {prefill: 5, total: 8}}).milliseconds",
        8,
    ),
    "a lane is as fast before its summary as after it": (
        "((one) => [one, {kind: 'summary', milliseconds: {prefill: 5, total: 8}, tokens_per_second: 125, target_calls: 1}].map((_, i, all) => Draftscope.laneNumbers(toy.model(...all.slice(0, i + 1))).speed))({...toy.step([], ['a'], 'bonus', {verify: 3}), prefill: 5})",
        [125, 125],
    ),
    "finished steps at a moment": (
        "((m) => [0, 2.9, 3, 99].map((ms) => Draftscope.stepsBy(m, ms)))(toy.model(toy.step([], ['a'], 'bonus', {verify: 3}), toy.step([], ['b'], 'bonus', {verify: 4})))",
        [0, 0, 1, 2],
    ),
    "a coin below is kept": (
        "[[0.3, 0.5], [0.5, 0.5], [null, 1], [null, 0]].map(([coin, accept]) => Draftscope.wasKept({coin, accept}))",
        [True, False, True, False],
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

CASES = cases(reader=READER, trace=TRACE, telling=TELLING, waiting=WAITING)


@pytest.mark.parametrize("case", CASES)
def test_it_gives(given, case):
    assert given[case] == CASES[case][1]
