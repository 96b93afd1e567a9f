"""A visitor's target behind a serving engine: only where the host lists it, and one sentence for whatever goes wrong."""

import threading
import time

import pytest

from app.settings import allowed_models
from engine.errors import UserError
from engine.parts.size_limits import Allowed, allowed_engine
from engine.trace import read_trace
from presets import family
from tests.app.test_own_pair import LOADED, load, refused
from tests.engine.small_engine import NAME, give, small_engine

HERE = family().parts["draft"]


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


WRONG = (
    ("vllm://127.0.0.1:1/a", None, "No engine answers at 127.0.0.1:1."),
    ("vllm://127.0.0.2:{port}/a", None, "asks no engine at that address"),
    ("vllm://127.0.0.1:{port}/other", None, "serves no model 'other'"),
    ("", ("/v1/models", lambda handler, body: time.sleep(6)), "took more than 2.4 s"),
    ("", ("/v1/models", lambda handler, body: give(handler, 401, {})), "refuses the key"),
    ("", ("/v1/models", lambda handler, body: give(handler, 307, {}, Location="http://127.0.0.1:1/")), "which is not followed"),
    ("", ("/tokenize", lambda handler, body: give(handler, 200, {"tokens": [1]})), "has another vocabulary"),
)  # fmt: skip


@pytest.mark.journey
def test_the_page_watches_a_target_behind_an_engine(host, arrive):
    """What goes wrong is one sentence. Whoever waits for an engine keeps nobody waiting: while it does not answer, another
    visitor's run begins and ends."""
    path = "/?n=12&drafter=chain&o.length=3"
    visitor, other = arrive(host, path), arrive(host, path)
    asked, answer = threading.Event(), threading.Event()
    with small_engine(host.engine_port) as engine:
        for target, wrong, told in WRONG:
            engine.wrong = dict([wrong]) if wrong else {}
            refused(visitor, (target or engine.target).format(port=engine.port), HERE, told)
        engine.wrong = {}
        refused(visitor, engine.target, "", "name one under “Draft”")  # there is no tokenizer
        load(visitor, engine.target, HERE)
        page = visitor.page
        page.wait_for_function(LOADED)
        told = page.inner_text("#own-facts") + page.inner_text("#own-models [role=alert]")
        assert f"embedded: behind 127.0.0.1:{engine.port}" in told
        assert visitor.run("Once upon a time there was a little dog") == "done", visitor.alarm
        trace = read_trace(visitor.trace())
        assert trace.run["target"]["name"] == NAME.rpartition("/")[2]
        assert trace.run["target"]["clock"] == "remote" and trace.summary["mean_accepted"] > 1

        def waits(handler, body):
            asked.set()
            answer.wait(60)
            give(handler, *engine.answer("/v1/completions", body))

        engine.wrong = {"/v1/completions": waits}
        visitor.click("run")
        assert asked.wait(120)
        assert other.run("The dog ran") == "done"
        assert not answer.is_set() and visitor.state == "running"
        engine.wrong = {}
        answer.set()
        visitor.wait_state("done")
