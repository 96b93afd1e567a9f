"""Runs on ZeroGPU with the real package ``spaces``, a forked worker and no device (``spaces_server``)."""

import json
import os
import subprocess
import sys

import pytest

from app import fence, zero
from app.menu import plain_pair
from engine.trace import read_trace
from tests.app.serving import REPOSITORY
from tests.app.spaces_server import lender
from tests.engine.family import tokens_of, trace_of

PROMPT = "Once upon a time"
ASKED = {
    "prompt": PROMPT,
    "pair": json.dumps({**plain_pair("chain"), "options": {"length": 3}}),
    "max_new_tokens": 12,
}


def on_zero(values: dict, quota: bool = True) -> tuple[dict, list]:
    """Make this run from a page on ZeroGPU. Returns its result, and the requests that the lender of devices got."""
    with lender(quota) as (url, asked):
        done = subprocess.run(
            [sys.executable, "-m", "tests.app.spaces_server", json.dumps(values)],
            cwd=REPOSITORY,
            env={**os.environ, "SPACES_ZERO_GPU": "1", "SPACES_ZERO_DEVICE_API_URL": url},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    told = next(line for line in done.stdout.split("\n") if line.startswith("{"))
    return json.loads(told), asked


@pytest.fixture(scope="module")
def told():
    return on_zero(ASKED)


def test_a_run_is_made_beyond_the_fence_and_is_the_same_run(told):
    told, asked = told
    assert told["on_zero"] and told["state"] == "done"
    trace = read_trace(told["text"])
    here = trace_of(PROMPT, drafter="chain", options={"length": 3}, max_new_tokens=12)
    assert tokens_of(trace) == tokens_of(here)
    assert trace.summary["stop"] == "length"
    workers = [int(given["pid"]) for path, given in asked if path == "/allow"]
    assert len(workers) == 2 and told["home"] not in workers, "one call a run, each forked"


def test_a_device_is_held_for_a_short_while_and_given_back(told):
    _, asked = told
    assert [path for path, _ in asked] == ["/schedule", "/allow", "/release"] * 2
    lent = [int(given["durationSeconds"]) for path, given in asked if path == "/schedule"]
    assert lent[0] < lent[1] <= 60, "more tokens, more seconds"


def test_a_seat_holds_strings_and_stopping_ends_the_call(told):
    told, asked = told
    assert not any(name.startswith(("torch", "engine")) for name in told["torch"])
    stopped = read_trace(told["stopped"])
    assert stopped.summary["stop"] == "cancelled"
    assert stopped.summary["new_tokens"] == len(tokens_of(stopped)) < 200
    assert told["stopped"].startswith(told["paused"]), "what was seen stays"
    assert asked[-1][0] == "/release"


@pytest.mark.exhaustive
def test_refusals_come_back_as_sentences():
    told, _ = on_zero({**ASKED, "prompt": "\u2603" * 3900})
    assert told["state"] == "error" and "tokens" in told["message"]
    told, asked = on_zero(ASKED, quota=False)
    assert told["state"] == "error" and "GPU" in told["message"]
    assert [path for path, _ in asked] == ["/schedule"], "nothing was lent"


@pytest.mark.parametrize(
    "values",
    [{}, {"max_new_tokens": 10**9}, {"max_new_tokens": None, "lanes": "[[["}, {"lanes": "[1,2,3]"}],
)
def test_the_seconds_are_bounded_whatever_is_asked(values):
    assert fence.OPENING <= fence.seconds("compare", json.dumps(values)) <= fence.MOST


def test_elsewhere_there_is_no_fence():
    made = []
    fence.job("watch#3", lambda values: made.append(values), {"a": 1})
    assert made == [{"a": 1}] and not zero.on_zero()
