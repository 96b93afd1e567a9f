"""Seats: what becomes of runs between events."""

import itertools
from dataclasses import replace

import pytest

from app.race import Race
from app.seats import FAILED, Seat, Seats
from app.settings import LIMITS
from engine.errors import UserError
from viz.race import split


class Fake:
    """A job of ``steps`` steps that records whether it was cancelled."""

    def __init__(self, steps: int = 5, trouble: Exception | None = None) -> None:
        self.left, self.trouble, self.cancelled = steps, trouble, False

    def header(self):
        return '{"kind":"run"}\n'

    def steps(self):
        while self.left and not self.cancelled:
            self.left -= 1
            if self.trouble and self.left == 0:
                raise self.trouble
            yield f'{{"kind":"step","left":{self.left}}}\n'

    def cancel(self):
        self.cancelled = True

    def summary(self):
        return '{"kind":"summary"}\n'


def test_to_the_end():
    seat = Seat(Fake())
    updates = list(seat.advance())
    assert updates[0] == ('{"kind":"run"}\n', "running", "")
    text, state, _ = updates[-1]
    assert state == "done"
    assert text.count("\n") == 7
    assert text.endswith('{"kind":"summary"}\n')
    for (before, *_), (after, *_) in itertools.pairwise(updates):
        assert after.startswith(before), "append-only, so that only what is new is sent"


def test_one_step_at_a_time():
    seat = Seat(Fake(2))
    states = [list(seat.advance(single=True))[-1][1] for _ in range(3)]
    assert states == ["paused", "paused", "done"]
    assert list(seat.advance()) == []


def test_pause_and_go_on():
    seat = Seat(Fake())
    event = seat.advance()
    next(event)
    assert seat.ask("pause")
    *_, (text, state, _) = event
    assert state == "paused"
    *_, (whole, state, _) = seat.advance()
    assert state == "done"
    assert whole.startswith(text)


def test_one_event_holds_a_seat():
    seat = Seat(Fake())
    first = seat.advance()
    next(first)
    assert list(seat.advance()) == []


def test_stop_while_paused_and_while_running():
    paused = Seat(Fake())
    assert paused.stop().endswith('{"kind":"summary"}\n')
    assert paused.job.cancelled
    running = Seat(Fake())
    event = running.advance()
    next(event)
    assert running.stop() is None
    running.ask("stop")
    assert [*event][-1][1] == "done"


def test_a_closed_tab_lets_the_run_go():
    seat = Seat(Fake())
    event = seat.advance()
    next(event)
    event.close()
    assert seat.job.cancelled
    assert seat.state == "gone"


@pytest.mark.parametrize(
    ("trouble", "told"), [(UserError("Too long."), "Too long."), (ValueError("secret"), FAILED)]
)
def test_trouble_is_told_in_one_sentence(trouble, told):
    job = Fake(3, trouble)
    text, state, message = list(Seat(job).advance())[-1]
    assert (state, message) == ("error", told)
    assert "secret" not in text
    assert job.cancelled


def test_the_last_run_of_a_visitor_is_let_go_for_the_next():
    seats, first, second = Seats(), Fake(), Fake()
    seats.put("a", "watch", Seat(first))
    seats.put("b", "watch", Seat(Fake()))
    kept = seats.put("a", "watch", Seat(second))
    assert first.cancelled
    assert not second.cancelled
    assert seats.get("a", "watch") is kept
    assert len(seats) == 2
    seats.leave("a")
    assert second.cancelled
    assert len(seats) == 1


def test_runs_that_nobody_comes_back_for_are_let_go():
    seats, job = Seats(replace(LIMITS, kept_seconds=-1)), Fake()
    seats.put("a", "watch", Seat(job))
    assert seats.get("a", "watch") is None
    assert job.cancelled


def test_a_run_whose_visitor_no_page_was_ever_seen_of_is_let_go_soon(monkeypatch):
    monkeypatch.setattr("app.seats.UNSEEN", -1)
    came = {"a", "c"}
    seats, jobs = Seats(came=came.__contains__), [Fake(), Fake(), Fake()]
    for session, job in zip("abc", jobs, strict=True):
        seats.put(session, "watch", Seat(job))
    came.remove("c")  # forgotten among others
    seats.sweep()
    assert [job.cancelled for job in jobs] == [False, True, False]


def test_a_run_under_way_is_never_swept():
    seats, job = Seats(replace(LIMITS, kept_seconds=-1)), Fake()
    updates = seats.put("a", "watch", Seat(job)).advance()
    next(updates)
    seats.sweep()
    assert not job.cancelled and len(seats) == 1
    updates.close()


def test_paused_and_finished_runs_outlive_a_broken_connection():
    seats, jobs = Seats(), [Fake() for _ in range(4)]
    seats.put("a", "watch", Seat(jobs[0]))
    running = seats.put("a", "compare", Seat(jobs[1])).advance()
    next(running)
    over = seats.put("a", "learn", Seat(jobs[2]))
    text = list(over.advance())[-1][0]
    other = seats.put("b", "watch", Seat(jobs[3])).advance()
    next(other)
    seats.cut_off("a")
    assert next(running, None) is None and jobs[1].cancelled, "nobody receives it any more"
    assert not jobs[0].cancelled and seats.get("a", "watch").state == "paused"
    assert seats.get("a", "learn").text == text
    assert list(other)[-1][1] == "done", "another visitor's"


def test_the_number_of_runs_is_bounded():
    seats = Seats(replace(LIMITS, kept_runs=2))
    over = seats.put("a", "watch", Seat(Fake()))
    list(over.advance())
    seats.put("b", "watch", Seat(Fake()))
    seats.put("c", "watch", Seat(Fake()))
    assert seats.get("a", "watch") is None, "a run that is over makes room"
    late = Fake()
    with pytest.raises(UserError):
        seats.put("d", "watch", Seat(late))
    assert late.cancelled


def test_lanes_take_turns():
    text = list(Seat(Race({"one": Fake(1), "two": Fake(3)})).advance())[-1][0]
    kinds = [(line.split('"')[3], line.split('"')[7]) for line in text.splitlines()]
    one, two = "one", "two"
    steps = [(one, "step"), (two, "step"), (one, "summary"), (two, "step"), (two, "step")]
    assert kinds == [(one, "run"), (two, "run"), *steps, (two, "summary")]
    assert split(text)["one"].splitlines()[-1] == '{"kind":"summary"}'


def test_a_stopped_race_has_all_its_summaries():
    seat = Seat(Race({"one": Fake(), "two": Fake()}))
    text = seat.stop()
    assert text.count('"summary"') == 2
