"""The speed of a finished run, measured in the background: shared, limited, and never in a visitor's way."""

import threading
import time

import pytest

from app import live, warm
from app.seats import Seat
from app.speed import Speeds
from app.traces import Opened
from app.turns import Turns
from presets import trace_text
from tests.app.finishing import SESSION, finished_run

NOTHING = {"measuring": False, "checked": None}
ROUNDS = 2  # as few as have quartiles


class WatchedTurns(Turns):
    """Notes, at each step of a measurement, whether a visitor's run had a place; before a step it calls ``hook``."""

    def __init__(self) -> None:
        super().__init__()
        self.crowded: list[bool] = []
        self.hook = lambda: None

    def aside(self, work):
        self.hook()
        self.crowded.append(self.counts() != (0, 0))
        return super().aside(work)


@pytest.fixture
def turns(monkeypatch):
    ready = threading.Event()
    ready.set()
    monkeypatch.setattr(warm, "ready", ready)
    monkeypatch.setattr("app.speed.ENOUGH", 0.0)  # as few rounds as may be
    monkeypatch.setattr("app.speed.LEAST", ROUNDS)
    turns = WatchedTurns()
    yield turns
    for session in (SESSION, "another"):
        live.leave(session, "watch")
    turns.close()


def answer(speeds: Speeds, session: str, seat: Seat) -> dict:
    """Ask until nothing more is measured, and return the last answer."""
    end = time.monotonic() + 120
    while (told := speeds.ask(session, seat))["measuring"]:
        assert time.monotonic() < end
        time.sleep(0.1)
    return told


def ended(speeds: Speeds) -> None:
    """Wait until nothing is being measured."""
    for thread in threading.enumerate():
        if thread.name == "speed":
            thread.join(60)


def test_what_was_measured_is_shared_by_those_who_ask_for_the_same(turns):
    speeds, seat = Speeds(turns), finished_run()
    before = seat.text
    assert speeds.ask(SESSION, seat)["measuring"], "nobody waits here"
    told = answer(speeds, SESSION, seat)["checked"]
    assert told["comparable"] and told["alike"] and told["tokens"] > 0
    assert told["speed"]["rounds"] == ROUNDS and told["speed"]["ratio"] > 0
    assert seat.text == before, "measuring leaves the run alone"
    steps = len(turns.crowded)
    again = finished_run(session="another")
    assert speeds.ask("another", again) == {"measuring": False, "checked": told}
    other = finished_run(session="another", tokens=13)
    assert speeds.ask("another", other)["measuring"], "another run is another question"
    live.leave("another", "watch")
    ended(speeds)
    assert len(turns.crowded) >= steps


def test_a_round_into_which_a_visitors_run_came_does_not_count(turns):
    speeds, seat = Speeds(turns), finished_run()
    came = iter([turns.enter])

    def once() -> None:
        if (enter := next(came, None)) is not None:
            turn = enter()
            threading.Timer(
                0.2, turn.leave
            ).start()  # its own end; the measurement must wait for it

    turns.hook = lambda: (once(), turns.free(60))
    rounds = answer(speeds, SESSION, seat)["checked"]["speed"]["rounds"]
    assert not any(turns.crowded)
    assert rounds == ROUNDS and turns.entered == 1


def test_nothing_is_measured_while_a_visitor_runs(turns):
    speeds, seat = Speeds(turns), finished_run()
    turn = turns.enter()
    assert speeds.ask(SESSION, seat)["measuring"]
    assert not turns.crowded
    turn.leave()
    answer(speeds, SESSION, seat)
    assert turns.crowded and not any(turns.crowded)


def test_a_visitor_who_runs_again_ends_the_measurement(turns):
    speeds, seat = Speeds(turns), finished_run()
    turns.hook = lambda: live.leave(SESSION, "watch")  # as each new run does
    speeds.ask(SESSION, seat)
    ended(speeds)
    assert len(turns.crowded) == 1, "after the step that was being taken"


@pytest.mark.parametrize("seed", [0, 5])
def test_where_the_seed_decides_plain_decoding_is_compared_with_the_same_noise(turns, seed):
    seat = finished_run("chain", 24, verifier="sampler_match", temperature=0.9, seed=seed)
    told = answer(Speeds(turns), SESSION, seat)["checked"]
    assert told["comparable"] and told["alike"] and told["tokens"] > 8


def test_other_sampled_texts_are_not_compared_but_timed(turns):
    told = answer(Speeds(turns), SESSION, finished_run("chain", temperature=0.9))["checked"]
    assert not told["comparable"] and told["speed"]["ratio"] > 0


def test_there_may_be_nothing_to_measure(turns):
    speeds = Speeds(turns)
    assert speeds.ask(SESSION, finished_run("none")) == NOTHING, "plain decoding itself"
    assert speeds.ask(SESSION, finished_run(tokens=4)) == NOTHING, "too short to be timed"
    opened = Seat(Opened(trace_text("story-tree")))
    opened.stop()
    live.seats.put(SESSION, "watch", opened)
    assert speeds.ask(SESSION, opened) == NOTHING, "made elsewhere"
    assert speeds.ask("nobody", None) == NOTHING
