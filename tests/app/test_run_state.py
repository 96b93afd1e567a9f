"""The states of a run on the page, as a table: a state and events in, the next state out."""

import pytest

BEGUN, RUNS = {"kind": "begun"}, {"kind": "reported", "state": "running", "message": ""}
LOADS = {"kind": "reported", "state": "running", "message": "The models are being loaded."}
DONE = {"kind": "reported", "state": "done", "message": ""}
PAUSED = {"kind": "reported", "state": "paused", "message": ""}
WRONG = {"kind": "reported", "state": "error", "message": "No such drafter."}
STOP = {"kind": "wished", "wish": "ask_stop"}
PAUSE = {"kind": "wished", "wish": "ask_pause"}
ENDED, CLEARED = {"kind": "ended"}, {"kind": "cleared"}
GONE = {"kind": "failed", "message": "The server is gone."}
CALMED, CALMED_WHOLE = ({"kind": "calmed", "whole": whole} for whole in (False, True))
SAID = {"kind": "said", "message": "Out of range."}


def at(state: str, message: str | None = None, **more) -> dict:
    return {"state": state, **({} if message is None else {"message": message}), **more}


CASES = {
    "a run that was asked for seems to run, but nothing is heard": ([BEGUN], at("running", "", unheard=True, wish=None)),
    "while models load, there is no run yet": ([BEGUN, LOADS], at("running", LOADS["message"], unheard=True)),
    "the first report makes it heard": ([BEGUN, RUNS], at("running", unheard=False)),
    "a wish waits until then, and is said": ([BEGUN, STOP], at("running", "It stops as soon as it begins.", wish="ask_stop")),
    "the later wish counts": ([BEGUN, STOP, PAUSE], at("running", "It pauses as soon as it begins.", wish="ask_pause")),
    "loading keeps the wish": ([BEGUN, STOP, LOADS], at("running", wish="ask_stop", unheard=True)),
    "a report takes the wish": ([BEGUN, STOP, RUNS], at("running", "", wish=None)),
    "a new run forgets an old wish": ([BEGUN, STOP, BEGUN], at("running", wish=None, unheard=True)),
    "a pause": ([BEGUN, RUNS, PAUSED], at("paused")),
    "a resumed run": ([BEGUN, RUNS, PAUSED, BEGUN, RUNS, DONE], at("done")),
    "requests that end after the report change nothing": ([BEGUN, RUNS, DONE, ENDED], at("done")),
    "requests that end without a report: the run was never taken": ([BEGUN, ENDED], at("error")),
    "a server that is gone": ([BEGUN, RUNS, GONE], at("error", GONE["message"])),
    "a mistake is forgotten with the next change": ([WRONG, CALMED], at("idle", "")),
    "and the finished trace is seen again": ([WRONG, CALMED_WHOLE], at("done", "")),
    "a change of settings leaves a run alone": ([BEGUN, RUNS, CALMED], at("running")),
    "words without a state": ([DONE, SAID], at("done", SAID["message"])),
    "an empty picture": ([BEGUN, RUNS, DONE, CLEARED], at("idle", "")),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_run_goes_from_state_to_state(scripts, case):
    events, wanted = CASES[case]
    run = scripts.evaluate(
        "(events) => events.reduce(DraftscopePage.nextState, DraftscopePage.IDLE)", events
    )
    assert {name: run[name] for name in wanted} == wanted
