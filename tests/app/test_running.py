"""One server from its start to its end: what it counts, what it logs, its tools, how it closes."""

import importlib.util
import json
import signal
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from gradio_client import Client
from prometheus_client.parser import text_string_to_metric_families

from engine.trace import read_trace
from tests.app.serving import serving

SECRET = "The password is kumquat"
ODD = f"{SECRET} \x1b[31m\x07 \u202ereversed\u202c \u200b end"
TOOLS = importlib.util.find_spec("mcp") is not None


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    log = tmp_path_factory.mktemp("server") / "log"
    with log.open("w+", encoding="utf-8") as errors:
        # a host's settings: the server still tries drafters while these tests run
        settings = {
            "DRAFTSCOPE_AHEAD": "examples",
            "DRAFTSCOPE_MEASURE": "1",
            "DRAFTSCOPE_LOG": "json",
        }
        settings |= {"DRAFTSCOPE_MCP": "1" if TOOLS else "0"}
        with serving(errors=errors, **settings) as server:
            yield server, log


def get(server, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"{server.url}{path}", timeout=30) as given:
            return given.status, given.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def counted(server) -> dict[str, float]:
    """Every sample by name, summed over its labels except the position, which is part of the name."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(get(server, "/metrics")[1]):
        for sample in family.samples:
            name = sample.name + (
                "@" + sample.labels["position"] if "position" in sample.labels else ""
            )
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
