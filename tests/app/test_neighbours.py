"""No part of one visitor's text appears in another visitor's drafts, not even as a rejected node. This is tested
with every drafter, on the page's own path from a press of Run to the trace.
"""

import json
from functools import cache

import pytest

from app import live
from engine.methods import drafters
from engine.trace import read_trace
from presets import family
from tests.grids import some

SECRET = "zymurgy Quokka 4711 xebec"
HIS = "The password of the old house is"
HERS = f"{HIS} {SECRET}. " * 3 + HIS
PARTS = family().parts.keys()
ABLE = [key for key, cls in drafters().items() if cls.needs.keys() <= PARTS]
LEARN = [key for key in ABLE if drafters()[key].learns]


def written(session: str, key: str, prompt: str) -> list[list]:
    """Press Run on Watch. Returns for each step its output and the tokens, parents and sources of its nodes."""
    cls = drafters()[key]
    sizes = {} if cls.size_option is None else {cls.size_option: cls.usual_size or 4}
    pair = json.dumps({"drafter": key, "options": {**sizes, **cls.trial}})
    wish = {"prompt": prompt, "pair": pair, "max_new_tokens": 16}
    *_, (text, state, message) = live.start(session, "watch", live.watch_job(session), wish)
    assert state == "done", message
    steps = read_trace(text).steps
    shown = ("token", "parent", "source")
    return [[*(step["nodes"][name] for name in shown), step["output"]["tokens"]] for step in steps]


@pytest.fixture
def alone(request):
    """Return drafter -> Bob's steps, made while this process had not served Ann yet with any drafter."""
    return before_ann(
        tuple(item.callspec.params["key"] for item in request.session.items if _of_this(item))
    )


@cache
def before_ann(keys: tuple[str, ...]) -> dict[str, list]:
    return {key: written(f"bob before, {key}", key, HIS) for key in keys}


def _of_this(item) -> bool:
    return item.path.samefile(__file__) and "key" in item.callspec.params


@pytest.mark.parametrize(
    "key", some(ABLE, {*LEARN, "none", "chain", "dflash", "eagle"}.__contains__)
)
def test_a_neighbour_s_text_is_nowhere_in_the_drafts(key, alone):
    her, cls = f"ann and {key}", drafters()[key]
    first = written(her, key, HERS)
    assert written(f"bob and {key}", key, HIS) == alone[key]
    remembered = live.memories.of(her).nbytes > 0
    assert remembered == cls.learns, "what is remembered is declared"
    if remembered and cls.family == "retrieval":
        assert written(her, key, HERS) != first, "the same text profits when she asks again"
