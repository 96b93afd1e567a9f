"""OpenAI's own client against the real server: the texts, the streams, the bounds, and what a client that leaves gives back."""

import json
from concurrent.futures import ThreadPoolExecutor

import httpx
import jsonschema
import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer

from app.openai_answer import Telling
from app.openai_request import Wish
from app.settings import LIMITS
from presets import family
from tests.app.wire import Wire
from tests.engine.family import lines_of, trace_of

PROMPT = "Once upon a time there was a little dog"
ASKED = {"model": "embedded", "temperature": 0}
TURNS = [{"role": "user", "content": "Tell me about a dog."}]
COUNTED = {"stream": True, "stream_options": {"include_usage": True}}


def client_of(url: str):
    import openai  # takes a second, and not in every process of the tests

    return openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0, timeout=300)


@pytest.fixture(scope="module")
def client(server):
    return client_of(server.url)


def streamed(client, **asked) -> tuple[str, list]:
    """Return the text of a streamed answer, and its chunks."""
    ask = client.chat.completions if "messages" in asked else client.completions
    chunks = list(ask.create(**{**ASKED, **COUNTED, **asked}))
    choices = [chunk.choices[0] for chunk in chunks if chunk.choices]
    texts = [one.delta.content if "messages" in asked else one.text for one in choices]
    assert [bool(one.finish_reason) for one in choices] == [False] * (len(choices) - 1) + [True]
    return "".join(text or "" for text in texts), chunks


@pytest.fixture(scope="module")
def generated() -> str:
    """Return the text that transformers writes after the prompt."""
    target = family().target
    tokenizer, model = (
        AutoTokenizer.from_pretrained(target),
        AutoModelForCausalLM.from_pretrained(target),
    )
    given = tokenizer(PROMPT, return_tensors="pt")
    tokens = model.generate(**given, max_new_tokens=40, do_sample=False)[
        0, given.input_ids.shape[1] :
    ]
    return tokenizer.decode(tokens, skip_special_tokens=True)


def test_the_models_are_those_that_write_text(client):
    assert [model.id for model in client.models.list()][:2] == ["embedded", "hybrid"]


def test_a_text_is_that_of_generate_streamed_or_not(client, generated):
    whole = client.completions.create(**ASKED, prompt=PROMPT, max_tokens=40)
    text, chunks = streamed(client, prompt=PROMPT, max_tokens=40)
    assert whole.choices[0].text == text == generated
    assert len(chunks) > 3, "it came in pieces"
    assert whole.choices[0].finish_reason == chunks[-2].choices[0].finish_reason == "length"
    for usage in (whole.usage, chunks[-1].usage):
        assert usage.completion_tokens == 40 and usage.total_tokens == usage.prompt_tokens + 40
        assert 0 <= usage.completion_tokens_details.accepted_prediction_tokens < 40


def test_an_answer_ends_where_the_model_ends_it_and_says_nothing_of_the_mark(client):
    whole = client.chat.completions.create(**ASKED, messages=TURNS)
    text, chunks = streamed(client, messages=TURNS)
    plain = trace_of("", drafter="none", messages=TURNS, max_new_tokens=LIMITS.new_tokens).summary
    assert plain["stop"] == "eos" and plain["text"].endswith("<|endoftext|>")
    assert whole.choices[0].message.content == text == plain["text"].removesuffix("<|endoftext|>")
    assert whole.choices[0].finish_reason == chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[0].choices[0].delta.role == "assistant"


def test_a_drawn_text_is_plain_decoding_s_of_that_seed(client):
    asked = {"prompt": PROMPT, "temperature": 0.8, "top_p": 0.9, "seed": 5, "max_tokens": 30}
    plain = trace_of(PROMPT, drafter="none", temperature=0.8, top_p=0.9, seed=5, max_new_tokens=30)
    assert streamed(client, **asked)[0] == plain.summary["text"]
    others = [streamed(client, **{**asked, "seed": seed})[0] for seed in (6, None)]
    assert plain.summary["text"] not in others


def test_four_stream_at_once_beside_eight_visitors_of_the_page(server, client):
    prompts = [PROMPT, "1 2 3 4 5 6", "The cat sat on", "One, two, one, two,"]
    alone = [client.completions.create(**ASKED, prompt=each, max_tokens=60) for each in prompts]
    visitors = [Wire(server.url, f"127.0.0.{20 + number}") for number in range(8)]
    with ThreadPoolExecutor(12) as pool:
        page = [
            pool.submit(lambda one: list(one.run(PROMPT, "chain", 60)), one) for one in visitors
        ]
        texts = [pool.submit(streamed, client, prompt=each, max_tokens=60) for each in prompts]
        assert [text.result()[0] for text in texts] == [one.choices[0].text for one in alone]
        assert [one.result()[-1][1] for one in page] == ["done"] * 8
    for visitor in visitors:
        visitor.leave()


@pytest.mark.parametrize("first", range(3))
def test_a_stop_string_over_several_tokens_is_never_told(client, first):
    """It begins and ends within tokens, and the text before it shares its beginning."""
    trace = trace_of(PROMPT, drafter="none", max_new_tokens=40)
    pieces = [piece for step in trace.steps for piece in step["output"]["pieces"]]
    text, start = "".join(pieces), len("".join(pieces[: 8 + first]))
    stop = text[start + 1 : len("".join(pieces[: 12 + first])) - 1]
    asked = {"prompt": PROMPT, "max_tokens": 40, "stop": ["never written", stop]}
    whole = client.completions.create(**ASKED, **asked)
    told, chunks = streamed(client, **asked)
    assert told == whole.choices[0].text == text[: text.index(stop)]
    assert whole.choices[0].finish_reason == chunks[-2].choices[0].finish_reason == "stop"


SCHEMA = {
    "type": "array",
    "items": {"enum": ["🦊", "🐻‍❄️", "漢", "é", "🐼"]},
    "minItems": 6,
    "maxItems": 6,
}


def test_a_text_follows_its_schema(client):
    form = {
        "type": "json_schema",
        "json_schema": {"name": "animals", "schema": SCHEMA, "strict": True},
    }
    asked = {"messages": TURNS, "response_format": form, "max_tokens": 120}
    text, _ = streamed(client, **asked, temperature=1, seed=1)
    jsonschema.validate(json.loads(text), SCHEMA)


def test_characters_come_whole_however_steps_divide_them():
    asked = {"json_schema": json.dumps(SCHEMA), "max_new_tokens": 120, "temperature": 1, "seed": 1}
    trace = trace_of(PROMPT, drafter="none", **asked)
    wish = Wish("embedded", {}, chat=False, stream=True, usage=False)
    telling, texts = Telling(wish, "a", "b"), []
    for line in lines_of(trace):
        chunks = telling.objects(json.dumps(line), ["<|endoftext|>"])
        texts += [chunk["choices"][0]["text"] for chunk in chunks]
    assert any(step["output"]["pieces"][-1] == "" for step in trace.steps), (
        "a step ends in a character"
    )
    assert not any("\ufffd" in text for text in texts)
    jsonschema.validate(json.loads("".join(texts)), SCHEMA)


@pytest.mark.parametrize(
    ("wrong", "field", "kind"),
    [
        ({"max_tokens": LIMITS.new_tokens + 1}, "max_tokens", "BadRequestError"),
        ({"model": "gpt"}, "model", "NotFoundError"),
        # more tokens than the context holds
        ({"prompt": "a b " * 900}, None, "BadRequestError"),
    ],
    ids=lambda wrong: str(wrong)[:30],
)
@pytest.mark.parametrize("stream", [False, True])
def test_what_cannot_be_done_is_told_in_openai_s_form(client, wrong, field, kind, stream):
    import openai

    with pytest.raises(getattr(openai, kind)) as told:
        client.completions.create(**{**ASKED, "prompt": "Once", "stream": stream, **wrong})
    error = told.value.body
    assert set(error) == {"message", "type", "param", "code"} and error["param"] == field
    assert error["type"] == "invalid_request_error" and error["message"].endswith((".", "?"))


def test_the_guard_s_refusals_have_that_form_too(server):
    foreign = httpx.post(
        f"{server.url}/v1/completions", json={}, headers={"origin": "https://other.example"}
    )
    for answer, status in [(foreign, 403), (httpx.get(f"{server.url}/v1/completions"), 404)]:
        assert answer.status_code == status
        assert set(answer.json()["error"]) == {"message", "type", "param", "code"}


def test_the_page_shows_the_run_of_an_answer(client, visit):
    raw = client.chat.completions.with_raw_response.create(**ASKED, messages=TURNS, max_tokens=24)
    answer, link = raw.parse(), raw.headers["X-Draftscope-Run"]
    assert answer.draftscope_run == link
    visitor = visit("/?" + link.partition("?")[2])
    visitor.page.wait_for_function("DraftscopePage.trace('watch').includes('\"key\":\"auto\"')")
    lines = [json.loads(line) for line in visitor.trace().split("\n") if line]
    assert lines[0]["prompt"]["messages"] == TURNS
    assert lines[-1]["text"].startswith(answer.choices[0].message.content)
    statuses = [status for line in lines[1:-1] for status in line["nodes"]["status"]]
    told = answer.usage.completion_tokens_details
    assert statuses.count("accepted") == told.accepted_prediction_tokens
    assert len(statuses) == told.accepted_prediction_tokens + told.rejected_prediction_tokens
