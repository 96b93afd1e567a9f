"""Whose place is whose: the shares of one address, and what is read of who a visitor is."""

import asyncio
import logging
from dataclasses import replace

import gradio as gr
import pytest
from starlette.datastructures import Headers

from app.answers import in_sentences
from app.bodies import Bodies, replayed
from app.logs import Sparing
from app.origins import Origins
from app.refusals import NONSENSE, Refused
from app.seats import Seat, Seats
from app.settings import LIMITS
from app.turns import Turns
from app.visitors import Visitors, client, proxies
from engine.errors import UserError
from tests.app.awaiting import awaited
from tests.app.test_seats import Fake


@pytest.mark.parametrize(
    ("host", "counted"),
    [
        ("10.0.0.7", "10.0.0.7"), ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"), ("2001:db8:1:2::9", "2001:db8:1:2::"),
        ("::ffff:10.0.0.7", "10.0.0.7"), ("fe80::1%eth0", "fe80::"), ("unix", "unix"), (None, ""),
    ],
)  # fmt: skip
def test_the_address_that_shares_are_counted_by(host, counted):
    assert client(host) == counted


def test_proxies_are_believed_only_where_they_are_named():
    assert proxies({}) == ""
    assert "10.0.0.0/8" in proxies({"SPACE_ID": "a/b"})
    assert proxies({"DRAFTSCOPE_PROXIES": " 192.0.2.1, 10.0.0.0/8 "}) == "192.0.2.1,10.0.0.0/8"
    with pytest.raises(UserError, match="neither"):
        proxies({"DRAFTSCOPE_PROXIES": "nginx"})


@pytest.mark.parametrize(
    ("environment", "host", "known"),
    [
        ({}, "203.0.113.5:7860", True), ({}, "school.example", False), ({}, "localhost:7860", True), ({}, "[2001:db8::1]", True),
        ({"DRAFTSCOPE_HOSTS": "a.example, *.school.example"}, "lab.school.example:443", True),
        ({"DRAFTSCOPE_HOSTS": "a.example, *.school.example"}, "A.example.", True),
        ({"DRAFTSCOPE_HOSTS": "a.example, *.school.example"}, "school.example.evil.example", False),
        ({"DRAFTSCOPE_HOSTS": "*"}, "any.example", True),
        ({"SPACE_ID": "me/it", "SPACE_HOST": "me-it.hf.space"}, "me-it.hf.space", True),
        ({"SPACE_ID": "me/it", "SPACE_HOST": "me-it.hf.space"}, "other.example", False),
    ],
)  # fmt: skip
def test_a_public_server_answers_to_its_names(environment, host, known):
    rule = Origins(local=False, environment=environment)
    if known:
        rule.check(Headers({"host": host}), api=False)
    else:
        with pytest.raises(Refused, match="DRAFTSCOPE_HOSTS"):
            rule.check(Headers({"host": host}), api=False)


def test_a_post_through_a_proxy_that_renames_the_host_is_the_page_s_own():
    rule = Origins(local=True, environment={})
    told = {"host": "127.0.0.1", "origin": "https://school.example"}
    rule.check(Headers({**told, "sec-fetch-site": "same-origin"}), api=True)
    rule.check(Headers({**told, "x-forwarded-host": "school.example"}), api=True)
    with pytest.raises(Refused):
        rule.check(Headers(told), api=True)


def reading(parts: list[bytes], end: bool = True, held: Bodies | None = None, **bounds) -> bytes:
    """Read the body in these parts, and return it. With ``end`` false, the client sends no more after the parts, and
    stays."""
    bodies, left = held or Bodies(replace(LIMITS, **bounds)), list(parts)

    async def receive():
        if not left:
            await asyncio.Event().wait()
        part = left.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(left) or not end}

    async def whole():
        with bodies.read("a") as one:
            return await one.whole(Headers({}), receive)

    return awaited(whole())


def test_a_body_within_bounds_is_passed_on_whole():
    body = reading([b"ab", b"", b"c"])

    async def twice():
        again = replayed(body, None)
        return await again()

    assert awaited(twice()) == {"type": "http.request", "body": b"abc", "more_body": False}


def test_a_body_that_does_not_end_is_refused():
    with pytest.raises(Refused) as told:
        reading([b"ab"], end=False, body_seconds=0.05)
    assert told.value.status == 408


def test_all_bodies_together_take_a_bounded_part_of_the_memory():
    half = b"a" * 1_000_000
    with pytest.raises(Refused) as told:
        reading([half, half, half], bodies_megabytes=8)
    assert told.value.status == 503
    bodies = Bodies(replace(LIMITS, bodies_megabytes=8))
    for _ in range(9):
        reading([half], held=bodies)  # each is given back


def test_a_long_text_is_one_value_and_many_values_are_too_many():
    text = b'{"a": "' + b'[{,}] \\" \\\\' * 100_000 + b'"}'
    assert reading([text]) == text
    for many in (b"[" + b"0," * 300_000 + b"0]", b"[" + b'"",' * 300_000 + b"0]"):
        with pytest.raises(Refused):
            reading([many])


def seats(here=(), **bounds) -> Seats:
    """Return seats whose sessions are named after their address, as in a1, a2, b1. here: the sessions that are here."""
    bounds = {"kept_runs": 6, "client_kept": 3, **bounds}
    return Seats(replace(LIMITS, **bounds), here.__contains__, lambda session: session[0])


def paused(where: Seats, session: str) -> Fake:
    job = Fake()
    list(where.put(session, "watch", Seat(job)).advance(single=True))
    return job


def test_made_up_sessions_displace_each_other_and_nobody_else():
    kept = seats(here={"b1"})
    his = paused(kept, "b1")
    jobs = [paused(kept, f"a{number}") for number in range(96)]
    assert [job.cancelled for job in jobs] == [True] * 93 + [False] * 3
    assert not his.cancelled and len(kept) == 4
    assert kept.put_out("a92", "watch") and not kept.put_out("b1", "watch")


def test_in_a_full_house_the_paused_run_left_longest_goes_first():
    kept = seats(here={"a1", "b1", "c1"})
    for session in ("a1", "b1", "b2", "c1", "c2", "c3"):
        paused(kept, session)
    paused(kept, "d1")
    assert kept.put_out("b2", "watch")
    paused(kept, "d2")
    paused(kept, "e1")
    assert kept.put_out("c2", "watch") and kept.put_out("c3", "watch")
    assert all(kept.get(session, "watch") for session in ("a1", "b1", "c1"))


def test_whoever_is_here_keeps_their_place_and_the_house_says_that_it_is_full():
    kept = seats(here={"a1", "a2", "a3"}, kept_runs=3)
    for session in ("a1", "a2", "a3"):
        paused(kept, session)
    with pytest.raises(UserError, match="from your address"):
        paused(kept, "a4")
    with pytest.raises(UserError, match="Too many people"):
        paused(kept, "b1")


def test_a_finished_run_goes_before_a_paused_one():
    kept = seats()
    list(kept.put("a1", "watch", Seat(Fake())).advance())
    paused(kept, "a2")
    paused(kept, "a3")
    paused(kept, "a4")
    assert kept.get("a1", "watch") is None and kept.get("a2", "watch")
    assert not kept.put_out("a1", "watch")


def test_one_address_takes_its_share_of_the_turns_and_others_pass_it_in_the_line():
    turns = Turns(replace(LIMITS, running=4, waiting=8, client_running=2, client_waiting=3))
    a = [turns.enter("a") for _ in range(5)]
    assert [turn.place for turn in a] == [0, 0, 1, 2, 3]
    with pytest.raises(UserError, match="your address"):
        turns.enter("a")
    b = [turns.enter("b") for _ in range(3)]
    assert [turn.place for turn in b] == [0, 0, 4]
    c = turns.enter("c")
    b[0].leave()
    assert c.place == 0 and b[2].place, "an address without a place comes first"
    b[1].leave()
    assert b[2].place == 0, "past the runs of an address that has its share"
    a[0].leave()
    assert a[2].place == 0 and a[3].place, "in order among those who may"
    turns.close()


def test_runs_of_nobody_known_have_no_share():
    turns = Turns(replace(LIMITS, running=4, client_running=1))
    assert [turns.enter().place for _ in range(4)] == [0] * 4
    turns.close()


def test_a_session_is_here_while_one_of_its_streams_is_open():
    visitors, arrived = Visitors(), []
    visitors.arrived = arrived.append
    visitors.seen("s", "10.0.0.1")
    assert not visitors.here("s") and visitors.address("s") == "10.0.0.1"
    with visitors.heartbeat("s", "10.0.0.2"):
        assert visitors.here("s") and not visitors.reads("s"), "a heartbeat takes no answers"
        with visitors.reading("s", "10.0.0.2"):
            assert visitors.here("s") and visitors.reads("s")
    assert not visitors.here("s") and visitors.address("s") == "10.0.0.2"
    assert arrived == ["s"]


def test_a_session_has_come_once_it_had_a_heartbeat():
    visitors = Visitors()
    visitors.seen("made up", "10.0.0.1")
    with visitors.reading("a program's", "10.0.0.1"), visitors.heartbeat("a page's", "10.0.0.1"):
        assert not visitors.came("made up")
        assert visitors.came("a program's") and visitors.came("a page's")
    assert visitors.came("a page's"), "it may come back"
    assert not visitors.came("a program's")


def test_a_session_is_silent_once_its_last_heartbeat_ends():
    visitors = Visitors()
    old, back = (visitors.heartbeat("s", "a") for _ in range(2))
    old.__enter__(), back.__enter__()
    assert not visitors.silent("s"), "it is back already"
    old.__exit__(None, None, None)
    assert visitors.silent("s") and visitors.here("s")
    back.__exit__(None, None, None)
    with visitors.heartbeat("s", "a"), visitors.heartbeat("s", "a"):
        assert not visitors.silent("s") and visitors.silent("s"), "both end at once"
    assert visitors.silent("s") and visitors.silent("nobody")


def test_sessions_that_are_made_up_do_not_push_out_one_that_is_here():
    visitors = Visitors()
    with visitors.heartbeat("s", "a"):
        for number in range(10_000):
            visitors.seen(str(number), "b")
        assert visitors.here("s") and visitors.address("9999") == "b"
    assert visitors.address("0") == ""


def test_each_kind_of_line_is_logged_a_few_times_a_minute():
    sparing = Sparing(most=3, seconds=1000)

    def passes(level: int, text: str, *values) -> bool:
        return sparing.filter(logging.LogRecord("a", level, "f", 1, text, values, None))

    assert [passes(logging.WARNING, "refused: %s", "host") for _ in range(5)] == [True] * 3 + [
        False
    ] * 2
    assert passes(logging.WARNING, "refused: %s", "origin")
    assert all(passes(logging.INFO, "run began") for _ in range(9))
    sparing = Sparing(most=1, seconds=-1)
    assert all(passes(logging.WARNING, "later") for _ in range(3))


def test_an_event_s_failure_is_a_sentence_and_no_traceback(capsys):
    def wrong():
        raise KeyError("/home/secret")

    with gr.Blocks() as page:
        gr.Button().click(wrong)
    in_sentences(page)
    function = page.fns[0]
    with pytest.raises(gr.Error) as told:
        awaited(page.process_api(function, []))
    assert told.value.message == NONSENSE and not told.value.print_exception
    assert "secret" not in capsys.readouterr().err
