"""Which step is on the screen and when the next one follows; see ``tests.viz.tables``."""

import pytest

from tests.viz.tables import cases

OPENING = "toy.opening({drafted: [3, 0, 3, 3, 3], drive: (player) => player.play()})"

PLAYER = {
    "an opening explains the first draft and the first refusal": (
        f"{OPENING}.paces",
        ["explain", "slow", "explain", "slow", "slow"],
    ),
    "where nothing is drafted at first there is nothing to explain yet": (
        "toy.opening({drafted: [0, 0, 3, 3], drive: (player) => player.play()}).paces",
        ["slow", "slow", "explain", "slow"],
    ),
    "after the last step it goes back to the telling one": (f"{OPENING}.rest", [2, None]),
    "and says so": (f"{OPENING}.after", "The run is over; step 3 shows a refusal."),
    "but not to a reader who has taken over": (
        "toy.opening({drafted: [3, 3, 3], drive: (player) => { player.play(); player.seek(0); player.play(); }}).after",
        "",
    ),
    "what is done to the time is said, and that it changes": (
        "toy.opening({drafted: [3, 3, 3, 3], drive: (player) => player.play()}).words",
        [
            *["Slowed down to explain; the times are real."] * 2,
            *["From here one step a second; the times are real."] * 2,
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

CASES = cases(player=PLAYER)


@pytest.mark.parametrize("case", CASES)
def test_it_gives(given, case):
    assert given[case] == CASES[case][1]
