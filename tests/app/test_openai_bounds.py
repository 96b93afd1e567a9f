"""A server with small shares: what one address may ask for, and what a client that leaves gives back."""

import json
import shutil
import time

import httpx
import openai
import pytest
from prometheus_client.parser import text_string_to_metric_families

from presets import family
from tests.app.serving import serving
from tests.app.test_openai import client_of

LONG = {"prompt": "1 2 3 4 5 6 7 8 9 10", "temperature": 0, "stream": True, "max_tokens": 900}
SHORT = {"prompt": "Once", "max_tokens": 2}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """One run of an address takes turns and one waits. The host's target has no chat template."""
    target = tmp_path_factory.mktemp("models") / "plain"
    shutil.copytree(family().target, target)
    config = target / "tokenizer_config.json"
    settings = json.loads(config.read_text("utf-8"))
    del settings["chat_template"]
    config.write_text(json.dumps(settings), "utf-8")
    shares = {"CLIENT_RUNNING": "1", "CLIENT_WAITING": "1", "MAX_NEW_TOKENS": "900"}
    shares = {f"DRAFTSCOPE_{name}": value for name, value in shares.items()}
    with serving(DRAFTSCOPE_TARGET=str(target), **shares) as server:
        yield server


@pytest.fixture
def client(small):
    made = client_of(small.url)
    made.completions.create(model="plain", **SHORT)  # the models are loaded
    return made


def metric(server, name: str, **labels: str) -> float:
    text = httpx.get(f"{server.url}/metrics").text
    samples = [one for each in text_string_to_metric_families(text) for one in each.samples]
    return sum(
        one.value for one in samples if one.name == name and labels.items() <= one.labels.items()
    )


def test_beyond_its_share_an_address_is_refused_and_another_is_not(small, client):
    first, second = (client.completions.create(model="plain", **LONG) for _ in range(2))
    with pytest.raises(openai.RateLimitError) as told:
        client.completions.create(model="plain", **SHORT)
    assert (
        told.value.body["type"] == "rate_limit_error" and "2 requests" in told.value.body["message"]
    )
    transport = httpx.HTTPTransport(local_address="127.0.0.9")
    other = client_of(small.url).with_options(http_client=httpx.Client(transport=transport))
    assert other.completions.create(model="plain", **SHORT).usage.completion_tokens == 2
    for stream in (first, second):
        stream.close()


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_gives_its_place_back(small, client, stream):
    before = metric(small, "vllm:request_success_total", finished_reason="abort")
    if stream:
        answer = client.completions.create(model="plain", **LONG)
        next(iter(answer))
        answer.close()
    else:
        with pytest.raises(openai.APITimeoutError):
            asked = {**LONG, "stream": False, "timeout": 0.3}
            client.completions.create(model="plain", **asked)
    while metric(small, "draftscope_kept_runs") or metric(small, "vllm:num_requests_running"):
        time.sleep(0.05)
    after = metric(small, "vllm:request_success_total", finished_reason="abort")
    assert after == before + 1, "the run was cut off, not written to its end"


def test_a_target_without_a_template_is_refused_for_chat(client):
    assert next(model.id for model in client.models.list()) == "plain"
    with pytest.raises(openai.BadRequestError, match="plain has no chat template"):
        client.chat.completions.create(model="plain", messages=[{"role": "user", "content": "Hi"}])
