"""A second run after a finished one: what if, or plain decoding measured for comparison."""

import json
from collections.abc import Mapping
from types import MappingProxyType, SimpleNamespace

import gradio as gr
import pytest

from app import again, live
from app.again import PLAIN, WHAT_IF, measure_plain, what_if_job
from app.figures import RunPanel
from app.made import made
from app.menu import plain_pair
from app.seats import Seat
from app.settings import LIMITS, model_paths
from app.traces import Opened
from engine.errors import UserError
from engine.run import RunRequest, open_run
from engine.trace import read_trace
from presets import trace_files
from presets.checked import compare

SESSION = "somebody"


@pytest.fixture
def finished():
    """finished(drafter, tokens, **request): a finished run in the visitor's seat."""

    def run(drafter: str = "prompt_lookup", tokens: int = 12, **more) -> Seat:
        request = RunRequest(
            "One, two, one, two,", model_paths(), drafter, max_new_tokens=tokens, **more
        )
        job = made(SESSION, "watch", lambda _: open_run(request), {})
        seat = live.seats.put(SESSION, "watch", Seat(job))
        list(seat.advance())
        return seat

    yield run
    live.leave(SESSION, "watch")


def wish(trace: str, pair: Mapping = MappingProxyType({}), **changes) -> dict:
    """pair: changes to the drafter and its rule."""
    line = trace.splitlines()[0]
    run, summary = json.loads(line), json.loads(trace.splitlines()[-1])
    return {
        "run": line,
        "new_tokens": summary["new_tokens"],
        "pair": json.dumps({**plain_pair(run["drafter"]["key"]), **pair}),
        "temperature": run["sampling"]["temperature"],
        **changes,
    }


def run_through(job) -> list[dict]:
    lines = [job.header(), *job.steps(), job.summary()]
    return [json.loads(line) for line in lines]


def test_the_same_run_but_for_what_changed(finished):
    text = finished().text
    first, (run, *_, summary) = (
        read_trace(text),
        run_through(what_if_job(wish(text, {"drafter": "none"}))),
    )
    assert run["drafter"]["key"] == "none"
    assert {k: run[k] for k in ("target", "sampling", "prompt")} == {
        k: first.run[k] for k in ("target", "sampling", "prompt")
    }
    assert summary["text"] == first.summary["text"], "greedy: any exact drafter writes the same"
    assert summary["new_tokens"] == first.summary["new_tokens"]


def test_further_cuts_of_the_run_are_made_again(finished):
    """A model's generation config may ask for them."""
    cuts = (("top_h", 0.5), ("min_p", 0.3), ("typical_p", 0.8))
    text = finished(temperature=1.5, seed=3, cuts=cuts).text
    first, (run, *_, summary) = read_trace(text), run_through(what_if_job(wish(text)))
    assert (
        run["sampling"] == first.run["sampling"] and dict(cuts).items() <= run["sampling"].items()
    )
    assert summary["text"] == first.summary["text"]


def test_another_temperature_finds_its_own_rule(finished):
    run, *_ = run_through(what_if_job(wish(finished().text, temperature=0.7)))
    assert run["verifier"]["key"] == "rejection"
    assert run["sampling"]["temperature"] == 0.7


@pytest.mark.exhaustive
def test_examples_can_be_asked_about():
    for file in trace_files().values():
        what_if_job(wish(file.read_text("utf-8"), {"drafter": "none"})).cancel()


def test_limits_hold(finished):
    job = again.again(read_trace(finished().text).run, 10**9)
    assert job.max_new_tokens == LIMITS.new_tokens


def foreign(trace: str, **target) -> str:
    run = json.loads(trace.splitlines()[0])
    run["target"].update(target)
    return json.dumps(run)


@pytest.mark.parametrize(
    "bad",
    [
        lambda t: {},
        lambda t: {"run": 3},
        lambda t: wish(t, run="nothing"),
        lambda t: wish(t, run="[]"),
        lambda t: wish(t, run=t.splitlines()[-1]),
        lambda t: wish(t, run="x" * (LIMITS.trace_bytes + 1)),
        lambda t: wish(t, run=foreign(t, parameters=7)),
        lambda t: wish(t, run=t.splitlines()[0].replace('"tokens":[', '"tokens":[1,')),
        lambda t: wish(t, {"drafter": "nobody"}),
        lambda t: wish(t, {"drafter": None}),
        lambda t: {**wish(t), "pair": "{"},
        lambda t: wish(t, {"verifier": "nothing"}),
        lambda t: wish(t, temperature=9),
        lambda t: wish(t, temperature="warm"),
        lambda t: wish(t, {"verifier": "greedy"}, temperature=0.5),
    ],
)
def test_nonsense_is_told_in_one_sentence(bad, finished):
    with pytest.raises(UserError) as told:
        what_if_job(bad(finished().text))
    assert str(told.value)[-1] in ".?" and "\n" not in str(told.value)


def test_plain_decoding_is_measured_once_and_apart(finished):
    seat = finished()
    before = seat.text
    updates = list(measure_plain(SESSION))
    state, message, (first, plain) = updates[-1]
    assert (state, seat.text) == ("done", before)
    assert "measured just now on this machine" in message
    assert plain.run["drafter"]["key"] == "none"
    assert plain.run["prompt"] == first.run["prompt"]
    assert plain.summary["new_tokens"] == first.summary["new_tokens"] == 12
    assert list(measure_plain(SESSION)) == updates[-1:], "measured once, told again"
    live.leave(SESSION, "watch")
    assert live.seats.get(SESSION, PLAIN) is None, "it goes with the run"


@pytest.mark.parametrize("seed", [0, 5])
def test_where_the_seed_decides_plain_decoding_is_compared_with_the_same_noise(finished, seed):
    finished("chain", 24, verifier="sampler_match", temperature=0.9, seed=seed)
    first, plain = list(measure_plain(SESSION))[-1][2]
    assert (plain.run["drafter"]["key"], plain.run["sampling"]["seed"]) == ("none", seed)
    told = compare(first, plain)
    assert told["comparable"] and told["alike"] and told["tokens"] == 24


def test_other_sampled_texts_are_not_compared(finished):
    finished("chain", temperature=0.9)
    assert not compare(*list(measure_plain(SESSION))[-1][2])["comparable"]


def test_measuring_can_be_stopped(finished):
    finished(tokens=64)
    for state, _, pair in measure_plain(SESSION):
        if state == "running":
            live.ask(SESSION, PLAIN, "stop")
    assert state == "done"
    assert pair is None or pair[1].summary["new_tokens"] < 64


def test_a_busy_machine_is_not_asked_unless_the_visitor_does(finished):
    finished()
    other = live.seats.put("another", "watch", Seat(Opened("x\n")))
    assert other.take()
    try:
        assert [state for state, _, _ in measure_plain(SESSION)] == ["skipped"]
        assert list(measure_plain(SESSION, asked=True))[-1][0] == "done"
    finally:
        other.free()
        live.leave("another", "watch")


def test_nothing_to_measure_against(finished):
    finished("none")
    assert list(measure_plain(SESSION)) == [], "plain decoding itself"
    opened = Seat(Opened(trace_files()["story-tree"].read_text("utf-8")))
    opened.stop()
    live.seats.put(SESSION, "watch", opened)
    assert list(measure_plain(SESSION)) == [], "made elsewhere"
    assert list(measure_plain("nobody")) == []


def test_what_hangs_on_a_run_goes_with_it(finished):
    live.seats.put(SESSION, WHAT_IF, Seat(Opened("x\n")))
    finished()
    assert live.seats.get(SESSION, WHAT_IF), "another seat"
    live.leave(SESSION, "watch")
    assert live.seats.get(SESSION, WHAT_IF) is None


class Chain:
    """An event of the page that records its follow-up calls, so that a test can make them in any order."""

    def __init__(self) -> None:
        self.calls = []

    def then(self, call, *_, **__) -> "Chain":
        self.calls.append(call)
        return self


def test_an_event_overtaken_by_the_end_of_a_run_measures_nothing_before_its_figures(finished):
    with gr.Blocks():
        panel, chain = RunPanel("figures-of-a-test"), Chain()
        panel.follow(chain, "watch")
    _, draw, frame, measure = chain.calls
    visitor = SimpleNamespace(session_hash=SESSION)

    def silent(values) -> bool:
        return all(value == gr.skip() for value in values)

    finished()  # while another event, such as the page's opening, still had its last step to do
    assert all(map(silent, measure(visitor)))
    assert live.seats.get(SESSION, PLAIN) is None
    assert silent(frame(visitor)), "not before the figures"
    assert not silent(draw(visitor))
    assert not silent(frame(visitor))
    assert "just now" in list(measure(visitor))[-1][0]
    assert silent(frame(visitor)), "room is made once; what was measured stays"
