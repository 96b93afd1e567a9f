"""One server from its start to its end: what it counts, what it logs, its tools, the shares of an address, how it closes."""

import importlib.util
import json
import shutil
import signal
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from gradio_client import Client
from prometheus_client.parser import text_string_to_metric_families

from engine.trace import read_trace
from presets import family
from tests.app.serving import serving
from tests.app.test_openai import client_of
from tests.app.tiny_family import FAMILY
from tests.app.wire import Wire

SECRET = "The password is kumquat"
ODD = f"{SECRET} \x1b[31m\x07 \u202ereversed\u202c \u200b end"
TOOLS = importlib.util.find_spec("mcp") is not None
LONG = {"prompt": "1 2 3 4 5 6 7 8 9 10", "temperature": 0, "stream": True, "max_tokens": 900}
SHORT = {"prompt": "Once", "max_tokens": 2}


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """Yield a server with a host's settings, which still tries drafters while these tests run. Of one address, one run
    takes turns and one waits. There is no real chat model, and the target has no chat template."""
    folder = tmp_path_factory.mktemp("server")
    target = folder / "plain"
    shutil.copytree(family().target, target)
    config = target / "tokenizer_config.json"
    settings = json.loads(config.read_text("utf-8"))
    del settings["chat_template"]
    config.write_text(json.dumps(settings), "utf-8")
    host = {"TARGET": str(target), "DRAFT": family().parts["draft"], "LOG": "json"}
    host |= {"AHEAD": "examples", "MEASURE": "1"}
    host |= {"MCP": "1" if TOOLS else "0", "REAL_MODELS": "off"}
    host |= {"CLIENT_RUNNING": "1", "CLIENT_WAITING": "1", "MAX_NEW_TOKENS": "900"}
    log = folder / "log"
    with log.open("w+", encoding="utf-8") as errors:
        named = {f"DRAFTSCOPE_{name}": value for name, value in host.items()}
        with serving(errors=errors, **named) as server:
            yield server, log


def get(server, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"{server.url}{path}", timeout=30) as given:
            return given.status, given.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def counted(server) -> dict[str, float]:
    """Return each metric's name -> its value, summed over its labels. "NAME@POSITION" and "NAME@REASON" are the values
    for one position or one reason."""
    found: dict[str, float] = {}
    for each in text_string_to_metric_families(get(server, "/metrics")[1]):
        for sample in each.samples:
            told = [
                sample.labels[one]
                for one in ("position", "finished_reason")
                if one in sample.labels
            ]
            for name in dict.fromkeys([sample.name, "@".join([sample.name, *told])]):
                found[name] = found.get(name, 0.0) + sample.value
    return found


def test_health(running):
    server, _ = running
    status, told = get(server, "/health")
    found = json.loads(told)
    assert status == 200 and found["status"] in ("loading", "ready")
    graphs, counts = found["graphs"], counted(server)
    assert 0 <= graphs["bytes"] <= graphs["most_bytes"] == counts["draftscope_graph_bytes_limit"]
    assert counts["draftscope_graph_bytes"] <= graphs["most_bytes"]
    assert {"draftscope_graphs"} <= counts.keys()


def test_what_is_counted_is_what_the_trace_says(running):
    server, _ = running
    client = Client(server.url, verbose=False)
    before = counted(server)
    text = client.predict(
        prompt=ODD, drafter="chain", options={"length": 4}, max_new_tokens=24, api_name="/run"
    )
    after = counted(server)

    def gained(name: str) -> float:
        return after.get(name, 0) - before.get(name, 0)

    trace = read_trace(text)
    nodes = [step["nodes"] for step in trace.steps]
    kept = [
        [d for d, s in zip(n["depth"], n["status"], strict=True) if s == "accepted"] for n in nodes
    ]
    spec = "vllm:spec_decode_num_"
    assert gained(f"{spec}drafts_total") == sum(bool(n["token"]) for n in nodes)
    assert gained(f"{spec}draft_tokens_total") == sum(len(n["token"]) for n in nodes)
    assert gained(f"{spec}accepted_tokens_total") == sum(map(len, kept)) > 0
    for position in range(4):
        wanted = sum(position + 1 in depths for depths in kept)
        assert gained(f"{spec}accepted_tokens_per_pos_total@{position}") == wanted
    assert gained("vllm:generation_tokens_total") == trace.summary["new_tokens"]
    assert gained("vllm:prompt_tokens_total") == len(trace.run["prompt"]["tokens"])
    assert gained("vllm:request_success_total") == 1
    assert gained("vllm:time_to_first_token_seconds_count") == 1
    assert gained("draftscope_steps_total") == len(trace.steps)
    assert gained("draftscope_refused_total") == 0
    with pytest.raises(Exception, match="oracle"):
        client.predict(prompt=ODD, drafter="oracle", api_name="/run")
    assert (
        counted(server)["draftscope_refused_total"] == after.get("draftscope_refused_total", 0) + 1
    )


def test_a_cancelled_run_is_let_go_and_a_sent_one_is_not_kept(running):
    server, _ = running
    client = Client(server.url, verbose=False)
    assert counted(server)["draftscope_kept_runs"] == 0, "nothing is kept once it was sent"
    job = client.submit(prompt=ODD, drafter="none", max_new_tokens=256, api_name="/run")
    next(iter(job))
    assert counted(server)["draftscope_kept_runs"] == 1
    job.cancel()
    until = time.monotonic() + 120
    while counted(server)["draftscope_kept_runs"] and time.monotonic() < until:
        time.sleep(0.2)
    assert counted(server)["draftscope_kept_runs"] == 0


@pytest.mark.skipif(not TOOLS, reason="the package mcp is not here")
def test_a_language_model_finds_and_uses_the_tools(running):
    import anyio
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    server, _ = running

    async def visit():
        async with (
            streamablehttp_client(f"{server.url}/gradio_api/mcp/") as (read, write, _),
            ClientSession(read, write) as session,
        ):
            await session.initialize()
            tools = (await session.list_tools()).tools
            wish = {"prompt": "Once upon a time", "max_new_tokens": 8, "steps": False}
            name = next(tool.name for tool in tools if tool.name.endswith("run"))
            return tools, await session.call_tool(name, wish)

    with ThreadPoolExecutor(1) as apart:  # browser tests keep an event loop in this thread
        tools, answer = apart.submit(anyio.run, visit).result()
    assert {tool.name.rpartition("_")[2] for tool in tools} == {"list", "methods", "run", "compare"}
    run = next(tool for tool in tools if tool.name.endswith("run"))
    assert "speculative decoding" in run.description
    told = run.inputSchema["properties"]
    assert set(told) >= {"prompt", "drafter", "temperature", "steps"}
    assert all(field.get("description") for field in told.values())
    assert not answer.isError
    assert '"kind":"summary"' in answer.content[0].text.replace(" ", "").replace("\\", "")


def test_a_host_can_switch_the_real_chat_model_off(running):
    server, _ = running
    assert "A real chat model" not in get(server, "/config")[1]
    wire = Wire(server.url)
    for event in ("fetch", "look"):
        told, *_ = wire.at_once("models-note", event, {"models": FAMILY})
        assert json.loads(told).keys() == {"models", "n"}, "nor can anybody ask for it"
    wire.leave()


@pytest.fixture
def client(running):
    made = client_of(running[0].url)
    made.completions.create(model="plain", **SHORT)  # the models are loaded
    return made


def test_beyond_its_share_an_address_is_refused_and_another_is_not(running, client):
    import openai  # takes a second, and not in every process of the tests

    first, second = (client.completions.create(model="plain", **LONG) for _ in range(2))
    with pytest.raises(openai.RateLimitError) as told:
        client.completions.create(model="plain", **SHORT)
    body = told.value.body
    assert body["type"] == "rate_limit_error" and "2 requests" in body["message"]
    transport = httpx.HTTPTransport(local_address="127.0.0.9")
    other = client.with_options(http_client=httpx.Client(transport=transport))
    assert other.completions.create(model="plain", **SHORT).usage.completion_tokens == 2
    for stream in (first, second):
        stream.close()


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_gives_its_place_back(running, client, stream):
    import openai

    server, cut_off = running[0], "vllm:request_success_total@abort"
    while counted(server)["draftscope_kept_runs"]:
        time.sleep(0.05)  # of the streams before
    before, patience = counted(server).get(cut_off, 0), time.monotonic() + 60
    if stream:
        answer = client.completions.create(model="plain", **LONG)
        next(iter(answer))
        answer.close()
    else:
        with pytest.raises(openai.APITimeoutError):
            asked = {**LONG, "stream": False, "timeout": 0.3}
            client.completions.create(model="plain", **asked)
    while counted(server).get(cut_off, 0) == before:
        assert time.monotonic() < patience, "the run was written to its end, not cut off"
        time.sleep(0.05)
    while (now := counted(server))["draftscope_kept_runs"] or now["vllm:num_requests_running"]:
        time.sleep(0.05)
    assert now[cut_off] == before + 1


def test_a_target_without_a_template_is_refused_for_chat(client):
    import openai

    assert next(model.id for model in client.models.list()) == "plain"
    with pytest.raises(openai.BadRequestError, match="plain has no chat template"):
        client.chat.completions.create(model="plain", messages=[{"role": "user", "content": "Hi"}])


def test_it_ends_in_good_order_and_its_log_tells_nobody_s_words(running):
    """This must be the last test of the file: it sends SIGTERM in the middle of a run."""
    server, log = running
    client = Client(server.url, verbose=False)
    job = client.submit(prompt=ODD, drafter="none", max_new_tokens=256, api_name="/run")
    updates = iter(job)
    text = next(updates)
    while text.count("\n") < 3:
        text = next(updates)
    server.process.send_signal(signal.SIGTERM)
    for text in updates:
        pass
    trace = read_trace(text)
    assert trace.summary["stop"] == "cancelled" and 0 < trace.summary["new_tokens"] < 256
    assert server.process.wait(120) == 0
    written = log.read_text("utf-8")
    assert SECRET not in written and "kumquat" not in written
    assert not any(ord(c) < 32 and c != "\n" for c in written), "no control character"
    lines = [json.loads(line) for line in written.split("\n") if line.startswith("{")]
    events = [line["event"] for line in lines if line["logger"].startswith("draftscope")]
    assert sorted(events[-3:-1]) == ["closing", "run ended"] and events[-1] == "closed"
    ended = [line for line in lines if line["event"] == "run ended"]
    assert {"stop": "cancelled", "drafter": "none"}.items() <= ended[-1].items()
