"""A visitor's target behind a serving engine: only where the host lists it, and one sentence for whatever goes wrong."""

import threading
import time

import pytest

from app.settings import allowed_models
from engine.errors import UserError
from engine.parts.size_limits import Allowed, allowed_engine
from engine.trace import read_trace
from presets import family
from tests.app.serving import serving
from tests.app.test_own_pair import load
from tests.app.visitor import Visitor
from tests.engine.small_engine import NAME, give, small_engine

HERE = family().parts["draft"]


@pytest.fixture(scope="module")
def engine():
    with small_engine() as engine:
        yield engine


@pytest.fixture(scope="module")
def lent(engine):
    listed = [engine.target.replace(NAME, "*"), "vllm://127.0.0.1:1/a", HERE]
    with serving(DRAFTSCOPE_OWN_MODELS=",".join(listed)) as running:
        yield running


@pytest.fixture
def visitor(lent, tabs):
    found = Visitor(tabs, lent.url, "/?n=12&drafter=chain&o.length=3", {})
    yield found
    found.leave()
    assert found.failures == [] and found.foreign == []


@pytest.mark.parametrize(
    "wish, listed",
    [
        ("vllm://10.0.0.5:8000/a", True), ("vllm://10.0.0.5:8000/b", False), ("vllm://10.0.0.5:8001/a", False),
        ("sglang://10.0.0.5:8000/a", False), ("vllm://10.0.0.6:80/any", True), ("vllm://10.0.0.6:80/of/these", True),
        ("vllm://169.254.169.254:80/a", False), ("vllm://10.0.0.6.evil.example:80/a", False),
    ],
)  # fmt: skip
def test_only_listed_engines_are_asked(wish, listed):
    allowed = Allowed(("*", "/", "vllm://10.0.0.5:8000/a", "vllm://10.0.0.6:80/*"))
    if listed:
        assert allowed_engine(wish, allowed) == wish
    else:
        with pytest.raises(UserError, match="asks no engine at that address"):
            allowed_engine(wish, allowed)
    assert allowed_engine("owner/name", allowed) is None


def test_a_host_hears_of_an_address_that_is_none():
    with pytest.raises(UserError, match="vllm://HOST:PORT/NAME"):
        allowed_models({"DRAFTSCOPE_OWN_MODELS": "*,vllm://somewhere"})


@pytest.mark.journey
def test_the_page_watches_a_target_behind_an_engine(visitor, engine):
    load(visitor, engine.target, HERE)
    page = visitor.page
    assert f"embedded: behind 127.0.0.1:{engine.port}" in page.inner_text("#own-facts")
    assert visitor.run("Once upon a time there was a little dog") == "done", visitor.alarm
    trace = read_trace(visitor.trace())
    assert trace.run["target"]["clock"] == "remote" and trace.summary["mean_accepted"] > 1
    assert page.evaluate(
        "(key) => DraftscopePage.trace('watch').includes(key)", NAME.rpartition("/")[2]
    )


WRONG = {
    "no engine": ("vllm://127.0.0.1:1/a", None, "No engine answers at 127.0.0.1:1."),
    "not listed": ("vllm://127.0.0.2:{port}/a", None, "asks no engine at that address"),
    "another name": ("vllm://127.0.0.1:{port}/other", None, "serves no model 'other'"),
    "no answer": (
        None,
        ("/v1/models", lambda handler, body: time.sleep(6)),
        "took more than 2.4 s",
    ),
    "a key": (
        None,
        ("/v1/models", lambda handler, body: give(handler, 401, {})),
        "refuses the key",
    ),
    "elsewhere": (
        None,
        (
            "/v1/models",
            lambda handler, body: give(handler, 307, {}, Location="http://127.0.0.1:1/"),
        ),
        "which is not followed",
    ),
    "another vocabulary": (
        None,
        ("/tokenize", lambda handler, body: give(handler, 200, {"tokens": [1]})),
        "has another vocabulary",
    ),
}


@pytest.mark.journey
@pytest.mark.parametrize("case", WRONG)
def test_what_goes_wrong_is_one_sentence(visitor, engine, case):
    target, wrong, told = WRONG[case]
    engine.wrong = dict([wrong]) if wrong else {}
    try:
        load(visitor, (target or engine.target).format(port=engine.port), HERE)
    finally:
        engine.wrong = {}
    said = visitor.page.inner_text("#own-models [role=alert]")
    assert told in said and "\n" not in said


def test_without_a_draft_there_is_no_tokenizer(visitor, engine):
    load(visitor, engine.target, "")
    assert "name one under “Draft”" in visitor.page.inner_text("#own-models [role=alert]")


@pytest.mark.journey
def test_whoever_waits_for_an_engine_keeps_nobody_waiting(visitor, engine, lent, tabs):
    """While the engine does not answer, another visitor's run begins and ends."""
    load(visitor, engine.target, HERE)
    asked, answer = threading.Event(), threading.Event()

    def waits(handler, body):
        asked.set()
        answer.wait(60)
        give(handler, *engine.answer("/v1/completions", body))

    engine.wrong = {"/v1/completions": waits}
    other = Visitor(tabs, lent.url, "/?n=12&drafter=chain&o.length=3", {})
    try:
        visitor.click("run")
        assert asked.wait(30)
        assert other.run("The dog ran") == "done"
        assert not answer.is_set() and visitor.state == "running"
    finally:
        engine.wrong = {}
        answer.set()
        other.leave()
    visitor.wait_state("done")
