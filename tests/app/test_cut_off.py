"""A connection that breaks for a moment: what the visitor had here is still here, and a page that is loaded anew gets it
back."""

import json

import httpx

from engine.trace import read_trace
from tests.app.wire import PREFIX, Wire


def section(wire: Wire, event: str, told: dict, elem_id: str = "own-models") -> dict:
    """Send this event of the section, and return the section's new value."""
    *_, outputs = wire.hear(wire.send(wire.event(elem_id, event), [], told))
    wire.own = outputs[-1]
    return json.loads(wire.own)


def turns(wire: Wire, prompt: str) -> int:
    """Make a run, and return how many turns its prompt has."""
    *_, (text, state, message) = wire.run(prompt, "none", 4)
    assert state == "done", message
    return len(read_trace(text).run["prompt"].get("messages", []))


def test_a_conversation_outlives_a_broken_connection_and_comes_back_to_a_new_page(wire, server):
    told = section(wire, "adjust", {"chat": True, "system": "Be short.", "stop": ["x"]})
    assert turns(wire, "Hello") == 2
    wire.break_off()
    assert turns(wire, "Hello") == 2
    wire.leave()
    again = Wire(server.url)
    back = section(again, "returned", {"token": told["token"]}, "tools")
    assert (back["chat"], back["system"], back["stop"]) == (True, "Be short.", ["x"])
    assert turns(again, "Hello") == 2
    lost = section(again, "returned", {"token": "nobody's"}, "tools")
    assert "no longer kept" in lost["problem"]
    again.leave()


def test_a_run_outlives_the_late_end_of_an_old_heartbeat(wire):
    with httpx.stream("GET", f"{wire.url}{PREFIX}/heartbeat/{wire.session}") as back:
        beats = back.iter_lines()
        next(beats)
        updates = wire.run("Once upon a time", "none", 256)
        next(updates), next(updates)
        wire.break_off()
        assert list(updates)[-1][1] == "done"


def test_what_is_gone_is_told_before_the_next_run(wire):
    section(wire, "adjust", {"chat": True, "system": "Be short.", "stop": []})
    seen = wire.own
    section(wire, "put_away", {})
    wire.own = seen  # the page still shows it
    *_, (_, state, message) = wire.run("Hello", "none", 4)
    assert state == "error" and "No longer here" in message
    wire.own = ""
    assert turns(wire, "Hello") == 0
