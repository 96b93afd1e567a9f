"""Many visitors: whose run takes the next step, what a limit says, and what is freed."""

import gc
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial

import pytest

from app.live import opened
from app.made import made
from app.seats import Seat, Seats
from app.settings import LIMITS, limits
from app.turns import HALF, RecentUse, Turns
from app.visitors import VISITORS
from engine.chat.wanted import WANTED, check_wanted
from engine.core.prompt import PromptReading
from engine.errors import UserError
from engine.run import Opened, Plan, begin, open_run
from engine.trace import read_trace
from tests.engine.family import request, tokens_of

PATIENCE = 120


class Counted:
    """A job of ``steps`` steps. At each step it adds its name to the list ``taken``, which jobs share.

    ``seconds`` is the length of a step. If steps took no time, the first thread would reach its end
    before the machine had started the second, whatever the rule for the turns.
    """

    def __init__(self, name: str, steps: int, taken: list[str], seconds: float = 0.0) -> None:
        self.name, self.left, self.taken, self.cancelled = name, steps, taken, False
        self.seconds = seconds

    def header(self):
        return "run\n"

    def steps(self):
        while self.left:
            self.left -= 1
            time.sleep(self.seconds)
            self.taken.append(self.name)
            yield f"{self.name}\n"

    def cancel(self):
        self.cancelled = True

    def summary(self):
        return "summary\n"


def few(**changes):
    return replace(LIMITS, **changes)


@contextmanager
def at_once(*works):
    """Run each of these functions in a thread of its own; at the end of the context all of them have ended. Raises an
    error that one of them raises."""
    threads = ThreadPoolExecutor(len(works))
    begun = [threads.submit(work) for work in works]
    yield
    for each in begun:
        each.result(PATIENCE)


def came(things: list, count: int) -> None:
    """Wait until the list holds ``count`` things."""
    until = time.monotonic() + PATIENCE
    while len(things) < count:
        assert time.monotonic() < until
        time.sleep(0.01)


def visitors(jobs: list[Counted], turns: Turns, bounds) -> list[list[tuple]]:
    """Run all jobs at once, each in a thread, as gradio does. Returns the updates that each visitor got."""
    told: list[list[tuple]] = [[] for _ in jobs]
    seats = [Seat(job, turns, bounds) for job in jobs]
    gates = [seat.advance() for seat in seats]
    for heard, gate in zip(told, gates, strict=True):
        heard.append(next(gate))  # in order: all have their places before the first step
    with at_once(*(partial(heard.extend, gate) for heard, gate in zip(told, gates, strict=True))):
        return told


def test_a_long_run_never_holds_a_short_one_behind_it():
    bounds, taken = few(running=2, waiting=8, share=5), []
    jobs = [Counted("long", 400, taken), Counted("longer", 400, taken)]
    jobs += [Counted(f"short {i}", 3, taken) for i in range(4)]
    told = visitors(jobs, Turns(bounds), bounds)
    assert [heard[-1][1] for heard in told] == ["done"] * 6
    for i in range(4):
        last = max(at for at, name in enumerate(taken) if name == f"short {i}")
        assert last < 200, "it did not wait for the 800 steps of the long ones"
    assert taken.count("long") == taken.count("longer") == 400


def test_a_run_stands_in_line_again_after_its_share_of_steps():
    turns = Turns(few(running=1, waiting=1, share=5))
    long, short = turns.enter(), turns.enter()
    for _ in range(4):
        long.step(lambda: None)
        assert (long.place, short.place) == (0, 1)
    long.step(lambda: None)
    assert (long.place, short.place) == (1, 0)
    for _ in range(5):
        short.step(lambda: None)
    assert (long.place, short.place) == (0, 1), "and so does the other"


def test_an_address_has_one_place_only_while_another_has_none():
    turns = Turns(few(running=3, client_running=3, waiting=8, share=100))
    many = [turns.enter("many") for _ in range(5)]
    assert [turn.place for turn in many] == [0, 0, 0, 1, 2], "nobody else is there"
    guests = [turns.enter(name) for name in ("one", "two", "three")]
    assert [guest.place for guest in guests] == [3, 4, 5]
    many[0].step(lambda: None)
    assert (many[0].place, guests[0].place) == (5, 0), "past the runs of the same address"
    many[1].step(lambda: None)
    assert (many[1].place, guests[1].place) == (5, 0)
    many[2].step(lambda: None)
    assert (many[2].place, guests[2].place) == (0, 3), "one place stays with each"
    guests[0].leave()
    assert guests[2].place == 0 and all(turn.place for turn in many[:2] + many[3:])
    guests[1].leave()
    assert many[3].place == 0, "no other address waits"


def test_runs_that_take_turns_take_a_step_each():
    bounds, taken = few(running=3, waiting=1, share=1000), []
    visitors([Counted(name, 60, taken, seconds=0.01) for name in "abc"], Turns(bounds), bounds)
    assert len(taken) == 180
    ends = [max(at for at, name in enumerate(taken) if name == one) for one in "abc"]
    assert min(ends) > 90, "none had run ahead to its end"


def test_a_long_prompt_is_read_while_others_take_steps(monkeypatch):
    monkeypatch.setattr("engine.run.run.PART", 8)
    asked = request("The dog saw a cat and ran. " * 12, drafter="chain", max_new_tokens=6)
    whole = open_run(asked)
    expected = read_trace(whole.header() + "".join(whole.steps()) + whole.summary())
    turns, taken, read_part = Turns(few()), [], PromptReading.read_part

    def noted(self, *given):
        time.sleep(0.02)
        read = read_part(self, *given)
        taken.append("part" if read else "end")
        return read

    monkeypatch.setattr(PromptReading, "read_part", noted)
    long, short = Seat(opened([asked])[0], turns), Seat(Counted("step", 40, taken, 0.01), turns)
    with at_once(*(partial(list, seat.advance()) for seat in (long, short))):
        pass
    found = read_trace(long.text)
    unread = len(found.run["prompt"]["tokens"]) - 1
    assert taken.count("part") == -(-unread // 8) > 4
    while_read = taken[taken.index("part") : taken.index("end")]
    assert "step" in while_read, "the other visitor took steps in between"
    assert tokens_of(found) == tokens_of(expected)
    assert found.summary["milliseconds"]["prefill"] > 0


def test_step_is_one_step_however_long_the_prompt(monkeypatch):
    monkeypatch.setattr("engine.run.run.PART", 8)
    asked = request("The dog saw a cat and ran. " * 4, drafter="none", max_new_tokens=3)
    seat = Seat(opened([asked])[0])
    for steps in (1, 2):
        assert list(seat.advance(single=True))[-1][1] == "paused"
        assert seat.text.count('"kind":"step"') == steps


def test_addresses_take_turns_however_many_runs_each_has():
    bounds, taken = few(running=4), []
    turns, names = Turns(bounds), ["bad 1", "bad 2", "bad 3", "good"]
    seats = [Seat(Counted(name, 60, taken, seconds=0.005), turns, bounds) for name in names]
    for name, seat in zip(names, seats, strict=True):
        seat.client = name.partition(" ")[0]
    with at_once(*(partial(list, seat.advance()) for seat in seats)):
        pass
    end = max(at for at, name in enumerate(taken) if name == "good")
    assert len(taken) == 240 and end < 150, (
        "a step for each of the others', not for each of their runs"
    )


def test_whoever_had_the_engine_least_goes_first():
    turns, order, held, began = Turns(few()), [], threading.Event(), threading.Event()

    def hold() -> None:
        began.set()
        held.wait(PATIENCE)

    turns.enter("busy").step(lambda: time.sleep(0.2))
    turns.enter("sometimes").step(lambda: time.sleep(0.05))
    with ThreadPoolExecutor(4) as threads:
        threads.submit(turns.enter("first").step, hold)
        began.wait(PATIENCE)
        for place, name in enumerate(["busy", "sometimes", "guest"]):
            threads.submit(turns.enter(name).step, partial(order.append, name))
            while len(turns._steps) <= place:
                time.sleep(0.001)
        held.set()
    assert order == ["guest", "sometimes", "busy"]


def test_use_fades():
    now = 0.0
    use = RecentUse(lambda: now)
    use.add("one", 4.0)
    now = HALF
    use.add("other", 1.0)
    assert use.of("one") == pytest.approx(2.0) and use.of("other") == 1.0 and use.of("nobody") == 0
    now = 100 * HALF
    for number in range(300):
        use.add(number, 1.0)
    assert len(use) == 300, "the first two are forgotten"


def test_one_is_told_ones_place_and_the_next_is_refused():
    bounds, taken = few(running=1, waiting=2), []
    turns = Turns(bounds)
    gates = [Seat(Counted(str(i), 3, taken), turns, bounds).advance() for i in range(4)]
    for gate in gates[:3]:
        next(gate)
    assert turns.counts() == (1, 2)
    assert "number 1 of 2 in line" in next(gates[1])[2]
    assert "number 2 of 2 in line" in next(gates[2])[2]
    ((_, state, message),) = list(gates[3])
    assert state == "error" and "1 runs take turns and 2 wait" in message
    list(gates[0])
    assert turns.counts() == (1, 1), "who was first in line has come in"
    assert list(gates[1])[-1][1] == "done"
    gates[2].close()
    assert turns.counts() == (0, 0), "a closed tab leaves its place at once"


def test_stop_and_pause_are_heard_in_line():
    bounds, taken = few(running=1, waiting=2), []
    turns = Turns(bounds)
    first, second = (Seat(Counted(name, 3, taken), turns, bounds) for name in "ab")
    ahead, behind = first.advance(), second.advance()
    next(ahead), next(behind), next(behind)
    assert second.ask("stop")
    assert list(behind)[-1][:2] == ("run\nsummary\n", "done")
    assert turns.counts() == (1, 0) and second.job.cancelled
    ahead.close()


def test_a_run_that_computes_too_long_or_writes_too_much_ends_with_a_sentence():
    for bounds, word in ((few(run_seconds=-1), "compute"), (few(trace_megabytes=0), "MB")):
        seat = Seat(Counted("a", 50, []), Turns(few()), bounds)
        text, state, message = list(seat.advance())[-1]
        assert state == "done" and word in message and text.endswith("summary\n")
        assert text.count("\n") == 3 and seat.job.cancelled


def session_of(run):
    """A weak reference to the target's session that a run under way holds."""
    frame = run._steps.gi_frame
    return weakref.ref(frame.f_locals["text"].session)


@pytest.mark.parametrize("way", ["stop", "close", "timeout", "paused stop"])
def test_what_ends_early_frees_its_keys_and_values_within_one_step(way):
    run = open_run(request("Once upon a time", drafter="chain", max_new_tokens=200))
    seats = Seats(few(kept_seconds=-1) if way == "timeout" else few())
    seat = Seat(run, Turns(few()), few())
    event = seat.advance(single=way in ("timeout", "paused stop"))
    next(event)
    if way in ("timeout", "paused stop"):
        list(event)
        seats._seats["visitor", "watch"] = seat
    else:
        while seat.text.count("\n") < 3:
            next(event)
    held, before = session_of(run), seat.text.count('"kind":"step"')
    assert held() is not None
    if way == "stop":
        seat.ask("stop")
        list(event)
    elif way == "close":
        event.close()
    elif way == "timeout":
        seats.sweep()
    else:
        seat.stop()
    assert held() is None, "without waiting for the collector of circles"
    assert seat.text.count('"kind":"step"') <= before + 1
    gc.collect()
    if "stop" in way:
        assert read_trace(seat.text).summary["stop"] == "cancelled"


def test_all_limits_come_from_one_file_or_the_environment(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_bytes(b"\xef\xbb\xbfrunning = 3\r\nkv_megabytes = 64\r\n")  # as Windows saves it
    found = limits({"DRAFTSCOPE_SETTINGS": str(file), "DRAFTSCOPE_RUNNING": "5"})
    assert (found.running, found.kv_megabytes, found.waiting) == (5, 64, LIMITS.waiting)
    assert any("5 take turns" in amount for _, amount in found.told())


@pytest.mark.parametrize(
    "content", ["running = 0", "running = 'x'", "running = 1.5", "runing = 3", "= broken"]
)
def test_a_mistake_in_the_settings_is_one_sentence(tmp_path, content):
    file = tmp_path / "settings.toml"
    file.write_text(content)
    with pytest.raises(UserError):
        limits({"DRAFTSCOPE_SETTINGS": str(file)})
    with pytest.raises(UserError):
        limits({"DRAFTSCOPE_SETTINGS": str(tmp_path / "none.toml")})


def test_a_drafter_that_drafts_more_than_is_allowed_ends_with_a_sentence():
    wanted = request("Once", drafter="multi_chain", most_nodes=2)
    with pytest.raises(UserError, match=r"Several chains drafts \d+ nodes in a step; at most 2"):
        open_run(replace(wanted, temperature=1.0)).step()


def test_a_size_that_is_not_allowed_is_refused_before_the_run_begins():
    wanted = request("Once", drafter="dyspec", options={"budget": 16}, most_nodes=8)
    with pytest.raises(
        UserError, match=r"DySpec drafts up to 16 nodes in a step; at most 8 .* to 8"
    ):
        open_run(wanted)


def test_keys_and_values_are_counted_before_they_are_held():
    with pytest.raises(UserError, match="keys and values"):
        opened([request("Once", max_new_tokens=900)], few(kv_megabytes=1))
    opening = Opened.of(Plan.of(request("Once", drafter="chain", max_new_tokens=100)))
    (run,) = begin([opening])
    run.step()
    cache = run._steps.gi_frame.f_locals["text"].session._cache
    columns, target = 102, 2 * 6 * 2 * 64 * 4  # keys and values, layers, heads, width, float32
    assert opening.kv_bytes >= columns * target
    assert cache is not None


def test_one_address_opens_few_runs_at_once_and_others_do_not_wait_for_it():
    few = LIMITS.client_running
    addresses = ["192.0.2.1"] * (few + 2) + ["192.0.2.2", ""]
    free, opened = threading.Event(), []

    def run(number: int, address: str) -> None:
        def make(values):
            opened.append(address)
            assert free.wait(PATIENCE)
            raise UserError("No such run.")

        if address:
            VISITORS.seen(f"opening {number}", address)
        with pytest.raises(UserError, match="No such run"):
            made(f"opening {number}", "watch", make, {})

    with at_once(*(partial(run, *one) for one in enumerate(addresses))):
        came(opened, few + 2)
        time.sleep(0.1)
        seen = sorted(opened)
        free.set()
    assert seen == ["", *addresses[:few], "192.0.2.2"]
    assert sorted(opened) == sorted(addresses)


def test_whoever_leaves_before_a_run_is_opened_waits_no_longer():
    """For others of the same address, or for a grammar."""
    free, began, wanted, said = threading.Event(), [], [], []

    def run(session: str) -> None:
        def make(values):
            wanted.append(WANTED.get()())
            began.append(session)
            while not free.wait(0.01):
                check_wanted()
            raise UserError("No such run.")

        try:
            made(session, "watch", make, {})
        except UserError as error:
            said.append(str(error))

    with ExitStack() as here:
        sessions = [f"leaving {number}" for number in range(LIMITS.client_running + 1)]
        for session in sessions:
            here.enter_context(VISITORS.heartbeat(session, "192.0.2.9"))
        with at_once(*(partial(run, session) for session in sessions)):
            came(began, LIMITS.client_running)
            here.close()
    free.set()
    assert all(wanted) and said == ["Nobody waits for this run any more."] * len(sessions)
    assert len(began) == LIMITS.client_running, "the one that waited never began"
