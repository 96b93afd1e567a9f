"""A request in OpenAI's words, read; a text, told piece by piece; and what is kept of an answer."""

import json
import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kept_answers import KeptAnswers
from app.openai_answer import lasting, whole
from app.openai_request import FOLLOWED, Refusal, read
from app.settings import LIMITS, Limits

MARKS = ["<e>", "<end>"]
STOPS = ["ab", "aab", "ba", "\n\n", "\n\na", "a🦊", "b<e"]
PIECES = ["a", "b", "ab", "\n", "\n\n", "🦊", " ", *MARKS]


@given(
    st.lists(st.sampled_from(PIECES), max_size=12),
    st.lists(st.sampled_from(STOPS), max_size=2),
    st.booleans(),
)
def test_what_is_told_is_never_taken_back_and_no_stop_string_is_told(pieces, stops, ended):
    """The text ends, as the engine's does, with the piece in which a stop string becomes complete."""
    text, said, piece = "", [""], ""
    for piece in pieces:
        text += piece
        said.append(lasting(text, stops, MARKS))
        if any(stop in text for stop in stops):
            break
    stop = "eos" if ended and text.endswith(tuple(MARKS)) else "stop"
    end = whole(text, stops, MARKS, stop)
    assert all(end.startswith(one) for one in said)
    written = text[: -len(piece)] if stop == "eos" else text
    assert end == (re.split("|".join(map(re.escape, stops)), written)[0] if stops else written)


def wish(**fields):
    chat = "messages" in fields
    given = {"model": "embedded", **({} if chat else {"prompt": "Once"}), **fields}
    return read(json.dumps(given).encode(), chat)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n", 2), ("best_of", 3), ("echo", True), ("suffix", "end"), ("logprobs", 0), ("logprobs", True), ("top_k", 3),
        ("top_logprobs", 2), ("logit_bias", {"1": 5}), ("frequency_penalty", 0.1), ("presence_penalty", -1),
        ("tools", [{"type": "function"}]), ("reasoning_effort", "high"), ("min_p", 0.1), ("unheard_of", 1),
        ("messages", [{"role": "user", "content": "Hi"}]), ("prompt", ["a", "b"]), ("prompt", [1, 2]), ("prompt", ""),
        ("max_tokens", 0), ("max_tokens", LIMITS.new_tokens + 1), ("max_completion_tokens", "many"), ("temperature", 3),
        ("temperature", "hot"), ("top_p", 0), ("seed", -1), ("stop", 7), ("stop", [""]), ("stop", ["a"] * 99),
        ("stream", "yes"), ("stream_options", {"include_usage": 1}), ("stream_options", {"other": True}),
        ("response_format", {"type": "json_object"}), ("response_format", {"type": "json_schema", "json_schema": {}}),
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_followed_is_refused_by_its_name(field, value):
    with pytest.raises(Refusal) as refused:
        read(json.dumps({"model": "embedded", "prompt": "Once", field: value}).encode(), False)
    assert refused.value.param == field and refused.value.status == 400
    assert str(refused.value)[-1] == "."


@pytest.mark.parametrize(
    "messages",
    [
        None, [], "Hi", [1], [{"role": "user"}], [{"role": "robot", "content": "Hi"}], [{"role": ["user"], "content": "Hi"}],
        [{"role": "user", "content": [{"type": "image_url"}]}], [{"role": "user", "content": [1]}],
        [{"role": "user", "content": "Hi", "name": "Ada"}], [{"role": "assistant", "content": "Hi"}],
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_conversation_is_refused(messages):
    with pytest.raises(Refusal) as refused:
        read(json.dumps({"model": "embedded", "messages": messages}).encode(), True)
    assert refused.value.param == "messages"


def test_the_model_must_be_one_that_writes_text():
    for model in (None, "image", "", "smollm", {}):
        with pytest.raises(Refusal, match="embedded, hybrid") as refused:
            read(json.dumps({"model": model, "prompt": "Once"}).encode(), False)
        assert (refused.value.status, refused.value.param) == (404, "model")


def test_what_asks_for_nothing_is_taken_and_the_rest_is_followed():
    usual = wish(
        n=1, logprobs=False, tools=[], logit_bias=None, user="a", frequency_penalty=0.0
    ).values
    assert (usual["temperature"], usual["top_p"], usual["max_new_tokens"]) == (0, 1, 16)
    assert len({wish().values["seed"] for _ in range(5)}) > 1, "drawn anew where none is asked for"
    asked = wish(
        temperature=0.5, top_p=0.9, seed=7, stop="\n", max_tokens=3, max_completion_tokens=5,
        response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": {"const": "é"}}},
    ).values  # fmt: skip
    assert json.loads(asked.pop("json_schema")) == {"const": "é"}
    assert asked == {
        "models": "", "prompt": "Once", "messages": None, "stop": ["\n"], "max_new_tokens": 5, "temperature": 0.5,
        "top_p": 0.9, "seed": 7,
    }  # fmt: skip
    said = [
        {
            "role": "developer",
            "content": [{"type": "text", "text": "Be "}, {"type": "text", "text": "brief."}],
        },
        {"role": "user", "content": "Hi", "tool_calls": [], "refusal": None},
    ]
    answer = wish(messages=said, stream=True, stream_options={"include_usage": True})
    assert answer.stream and answer.usage and answer.values["max_new_tokens"] == LIMITS.new_tokens
    assert answer.values["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
    ]


ODD = [True, 0, -1, 10**400, float("nan"), float("inf"), "", "\ud800", [], [None], [[]], [{}], {}]
ODD += [{"type": []}, {"type": "json_schema", "json_schema": []}, {"include_usage": None}]
ODD += [[{"role": {}, "content": [{"type": {}}]}]]


@pytest.mark.parametrize("chat", [False, True])
@pytest.mark.parametrize("field", [*sorted(FOLLOWED), "prompt", "messages", "n", "tools"])
def test_nothing_that_is_sent_makes_reading_fail(field, chat):
    for odd in ODD:
        try:
            read(json.dumps({"model": "embedded", field: odd}).encode(), chat)
        except Refusal as refused:
            assert str(refused)


@pytest.mark.parametrize("body", [b"", b"[]", b"\xff", b"[" * 100_000, b'"a"'])
def test_a_body_that_is_no_object_is_refused(body):
    with pytest.raises(Refusal, match="not a JSON object"):
        read(body, True)


def test_answers_are_kept_within_bounds():
    kept = KeptAnswers(Limits(answers_megabytes=1))
    trace = Random(0).randbytes(100_000).hex()  # packed, it takes 100 kB and a little
    kept.keep("other", "b", trace)
    for number in range(12):
        kept.keep(str(number), "a", trace)
    there = [name for name in map(str, range(12)) if kept.trace(name) is not None]
    assert there == ["10", "11"], "the last of an address, as many as its quarter holds"
    assert kept.trace("other") == trace, "another address's is not pushed out"
    for number in range(12):
        kept.keep(f"a{number}", str(number), trace)
    assert kept.trace("other") is None and kept.trace("a11") == trace, "the oldest of all goes"
    kept = KeptAnswers(Limits(kept_seconds=1))
    kept.keep("a", "", "trace")
    assert kept.trace("a") == "trace"
    kept._kept["a"] = kept._kept["a"]._replace(since=kept._kept["a"].since - 2)
    assert kept.trace("a") is None
