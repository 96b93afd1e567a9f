"""The size that the page picks for a draft is picked once for a visit."""

import json

import pytest

from app import live
from app.menu import plain_pair
from app.sizes import MOST_VISITORS, Sizes
from engine.methods.chain.drafter import ChainDrafter
from engine.trace import read_trace
from viz.race import split

WISH = {"prompt": "Once upon a time", "max_new_tokens": 6, "models": ""}


def watched(session: str, **options) -> int:
    """Make a run on Watch, and return the length of its drafts."""
    values = {**WISH, "pair": json.dumps(plain_pair("chain", options))}
    *_, (text, state, message) = live.start(session, "watch", live.watch_job(session), values)
    assert state == "done", message
    return read_trace(text).run["drafter"]["options"]["length"]


def raced(session: str) -> list[int]:
    lanes = json.dumps([plain_pair("none"), plain_pair("chain")])
    values = {**WISH, "lanes": lanes}
    *_, (text, state, message) = live.start(
        session, "compare", lambda v: live.compare_job(v, session), values
    )
    assert state == "done", message
    traces = [read_trace(own) for own in split(text).values()]
    return [trace.run["drafter"]["options"].get("length") for trace in traces]


def test_the_first_choice_stays_for_the_visit(monkeypatch):
    monkeypatch.setattr(ChainDrafter, "usual_size", 5)
    assert watched("ann") == 5
    monkeypatch.setattr(ChainDrafter, "usual_size", 2)  # the machine has become slower, say
    assert watched("ann") == watched("ann", length=0) == 5
    assert raced("ann") == [None, 5], "in a race, too"
    assert watched("ann", length=3) == 3, "a number of the visitor's own"
    assert watched("ann", stop_below=0.0) == 2, "other options are another drafter"
    assert watched("bob") == 2, "another visit"
    assert raced("bob") == [None, 2]


def test_made_up_visitors_make_nobody_who_is_here_lose_theirs():
    sizes = Sizes({"ann"}.__contains__)
    values = {"pair": json.dumps(plain_pair("chain"))}
    header = json.dumps({"drafter": {"options": {"length": 3}}})
    for session in ("ann", *map(str, range(MOST_VISITORS + 9))):
        sizes.keep(session, "", values, header)
    assert "3" in sizes.settled("ann", "", values)["pair"]
    assert "3" not in sizes.settled("0", "", values)["pair"]


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"pair": None},
        {"pair": "no json"},
        {"pair": "3"},
        {"pair": json.dumps({"drafter": 3})},
        {"pair": json.dumps({"drafter": "chain", "options": [1]})},
        {"lanes": "[1, null]"},
        {"lanes": "3"},
    ],
)
def test_values_that_make_no_sense_are_left_to_the_checks_that_follow(odd):
    sizes = Sizes()
    header = json.dumps({"drafter": {"options": {"length": 3}}})
    sizes.keep("a", "", odd, header)
    assert json.dumps(sizes.settled("a", "", odd)).count("3") <= json.dumps(odd).count("3") + 1


@pytest.mark.parametrize("odd", ["\u2028", "\u2029", "\x85"])
def test_a_prompt_with_other_line_ends_begins(odd):
    """A trace has a line for each entry, whatever the prompt in it contains."""
    values = {**WISH, "prompt": f"Once{odd}upon a time", "pair": json.dumps(plain_pair("chain"))}
    *_, (text, state, message) = live.start("eve", "watch", live.watch_job("eve"), values)
    assert state == "done", message
    assert read_trace(text).run["prompt"]["text"] == values["prompt"]
