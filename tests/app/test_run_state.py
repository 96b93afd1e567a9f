"""The states of a run on the page, as a table: a state and events in, the next state out."""

import pytest

from app.assets import WEB
from tests.viz.modules import exposed

BEGUN, RUNS = {"kind": "begun"}, {"kind": "reported", "state": "running", "message": ""}
LOADS = {"kind": "reported", "state": "running", "message": "The models are being loaded."}
DONE = {"kind": "reported", "state": "done", "message": ""}
PAUSED = {"kind": "reported", "state": "paused", "message": ""}
WRONG = {"kind": "reported", "state": "error", "message": "No such drafter."}
STOP = {"kind": "wished", "wish": "ask_stop"}
PAUSE = {"kind": "wished", "wish": "ask_pause"}
ENDED, CLEARED = {"kind": "ended"}, {"kind": "cleared"}
GONE = {"kind": "failed", "message": "The server is gone."}
CASES = {
    "a run that was asked for seems to run, but nothing is heard": (
        [BEGUN],
        {"state": "running", "message": "", "unheard": True, "wish": None},
    ),
    "while models load, there is no run yet": (
        [BEGUN, LOADS],
        {"state": "running", "message": LOADS["message"], "unheard": True},
    ),
    "the first report makes it heard": ([BEGUN, RUNS], {"state": "running", "unheard": False}),
    "a wish waits until then, and is said": (
        [BEGUN, STOP],
        {"state": "running", "wish": "ask_stop", "message": "It stops as soon as it begins."},
    ),
    "the later wish counts": (
        [BEGUN, STOP, PAUSE],
        {"wish": "ask_pause", "message": "It pauses as soon as it begins."},
    ),
    "loading keeps the wish": ([BEGUN, STOP, LOADS], {"wish": "ask_stop", "unheard": True}),
    "a report takes the wish": ([BEGUN, STOP, RUNS], {"wish": None, "message": ""}),
    "a new run forgets an old wish": ([BEGUN, STOP, BEGUN], {"wish": None, "unheard": True}),
    "a pause": ([BEGUN, RUNS, PAUSED], {"state": "paused"}),
    "a resumed run": ([BEGUN, RUNS, PAUSED, BEGUN, RUNS, DONE], {"state": "done"}),
    "requests that end after the report change nothing": (
        [BEGUN, RUNS, DONE, ENDED],
        {"state": "done"},
    ),
    "requests that end without a report: the run was never taken": (
        [BEGUN, ENDED],
        {"state": "error"},
    ),
    "a server that is gone": (
        [BEGUN, RUNS, GONE],
        {"state": "error", "message": GONE["message"]},
    ),
    "a mistake is forgotten with the next change": (
        [WRONG, {"kind": "calmed", "whole": False}],
        {"state": "idle", "message": ""},
    ),
    "and the finished trace is seen again": (
        [WRONG, {"kind": "calmed", "whole": True}],
        {"state": "done", "message": ""},
    ),
    "a change of settings leaves a run alone": (
        [BEGUN, RUNS, {"kind": "calmed", "whole": False}],
        {"state": "running"},
    ),
    "words without a state": (
        [DONE, {"kind": "said", "message": "Out of range."}],
        {"state": "done", "message": "Out of range."},
    ),
    "an empty picture": ([BEGUN, RUNS, DONE, CLEARED], {"state": "idle", "message": ""}),
}


@pytest.fixture(scope="module")
def page(browser):
    page = browser.new_page()
    page.add_script_tag(content=exposed("DraftscopePage", WEB))
    yield page
    page.close()


@pytest.mark.parametrize("case", CASES)
def test_a_run_goes_from_state_to_state(page, case):
    events, wanted = CASES[case]
    run = page.evaluate(
        "(events) => events.reduce(DraftscopePage.nextState, DraftscopePage.IDLE)", events
    )
    assert {name: run[name] for name in wanted} == wanted
