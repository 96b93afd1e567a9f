"""A finished run, made again: as it was, or as plain decoding."""

import pytest

from app import live
from app.again import again, plainly
from app.settings import LIMITS
from engine.trace import read_trace
from presets import trace_names, trace_text
from tests.app.finishing import SESSION, finished_run
from tests.engine.family import ran


@pytest.fixture
def finished():
    """finished(drafter, tokens, **request): the trace of a finished run."""
    yield lambda *given, **more: read_trace(finished_run(*given, **more).text)
    live.leave(SESSION, "watch")


def test_the_same_run_and_plain_decoding_of_its_prompt(finished):
    first = finished()
    same, plain = ran(again(first.run, 12)), ran(plainly(first.run, 12))
    assert same.run == first.run and same.summary["text"] == first.summary["text"]
    assert plain.run["drafter"]["key"] == "none"
    assert {k: plain.run[k] for k in ("target", "sampling", "prompt")} == {
        k: first.run[k] for k in ("target", "sampling", "prompt")
    }
    assert plain.summary["text"] == first.summary["text"], "greedy: any exact drafter writes it"


def test_further_cuts_of_the_run_are_made_again(finished):
    """A model's generation config may ask for them."""
    cuts = (("top_h", 0.5), ("min_p", 0.3), ("typical_p", 0.8))
    first = finished(temperature=1.5, seed=3, cuts=cuts)
    same = ran(again(first.run, 12))
    assert same.run["sampling"] == first.run["sampling"]
    assert dict(cuts).items() <= same.run["sampling"].items()
    assert same.summary["text"] == first.summary["text"]


def test_limits_hold(finished):
    assert again(finished().run, 10**9).max_new_tokens == LIMITS.new_tokens


@pytest.mark.exhaustive
def test_every_example_can_be_made_again():
    for name in trace_names():
        plainly(read_trace(trace_text(name)).run, 8)
