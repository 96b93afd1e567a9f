"""A finished run, made again with a change."""

import json
from collections.abc import Mapping
from types import MappingProxyType

import pytest

from app import again, live
from app.again import WHAT_IF, what_if_job
from app.menu import plain_pair
from app.seats import Seat
from app.settings import LIMITS
from app.traces import Opened
from engine.errors import UserError
from engine.trace import read_trace
from presets import trace_files
from tests.app.finishing import SESSION, finished_run


@pytest.fixture
def finished():
    """finished(drafter, tokens, **request): a finished run in the visitor's seat."""
    yield finished_run
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


def test_what_hangs_on_a_run_goes_with_it(finished):
    live.seats.put(SESSION, WHAT_IF, Seat(Opened("x\n")))
    finished()
    assert live.seats.get(SESSION, WHAT_IF), "another seat"
    live.leave(SESSION, "watch")
    assert live.seats.get(SESSION, WHAT_IF) is None
