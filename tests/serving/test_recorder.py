"""The recorder in vLLM itself: `make serving-test`, which installs both and names vLLM's Python in DRAFTSCOPE_VLLM."""

import json
import subprocess
import threading
import time

import pytest

from engine.trace import read_trace
from presets import family
from tests.serving.vllm_server import DRAFT, NGRAM, PYTHON, environment, vllm_server

pytestmark = [
    pytest.mark.skipif(not PYTHON, reason="vLLM is not here; `make serving-test` installs it"),
    pytest.mark.timeout(1800),
]
PROMPTS = [
    f"{begin} {number}"
    for number in range(20)
    for begin in (
        "Once upon a time there was a",
        "1 2 3 4 5 6 7 8",
        "The cat and the dog",
        "Tom had a big red ball. Tom had a big",
        "def area(width):",
    )
]


@pytest.fixture(scope="module", params=[DRAFT, NGRAM], ids=lambda setting: setting["method"])
def server(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    log = tmp_path_factory.mktemp("vllm") / "log"
    with vllm_server(request.param, log, DRAFTSCOPE_RECORD=str(folder)) as server:
        server.folder, server.method = folder, request.param["method"]
        yield server


def finished(folder, count: int) -> list:
    """The records, once so many have their summary."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        texts = [path.read_text("utf-8") for path in folder.glob("*.ndjson")]
        if sum('"kind":"summary"' in text for text in texts) >= count:
            return [read_trace(text) for text in texts]
        time.sleep(0.5)
    pytest.fail("the records have no summaries")


def test_a_hundred_requests_at_once(server):
    """Each record is valid and holds the answer's tokens; together they count what vLLM counts."""
    answers = server.ask_all(PROMPTS)
    traces = finished(server.folder, len(PROMPTS))
    by_request = {trace.run["recorded"]["request"]: trace for trace in traces}
    assert len(by_request) == len(traces) == len(PROMPTS)
    for prompt, answer in zip(PROMPTS, answers, strict=True):
        (choice,) = answer["choices"]
        (trace,) = [one for name, one in by_request.items() if name.startswith(answer["id"])]
        assert [t for step in trace.steps for t in step["output"]["tokens"]] == choice["token_ids"]
        assert trace.run["prompt"]["tokens"] == choice["prompt_token_ids"]
        assert trace.run["prompt"]["text"] == prompt
        assert trace.summary["stop"] == {"length": "length", "stop": "eos"}[choice["finish_reason"]]
        assert trace.run["drafter"]["key"] == f"vllm_{server.method}"
        for step in trace.steps:
            assert all(q is None for q in step["nodes"]["q"])
            for place, status in zip(step["distributions"], step["nodes"]["status"], strict=False):
                drafted = step["nodes"]["token"][place["node"] + 1]
                assert (place["p"][0][0] == drafted) == (status == "accepted")
    accepted = sum(
        count * steps
        for trace in traces
        for count, steps in enumerate(trace.summary["accepted_histogram"])
    )
    beyond = sum(trace.summary["beyond_end"] for trace in traces)
    drafts = [step for trace in traces for step in trace.steps if step["nodes"]["token"]]
    assert accepted + beyond == server.counted("spec_decode_num_accepted_tokens") > 100
    assert len(drafts) == server.counted("spec_decode_num_drafts")
    assert sum(len(step["nodes"]["token"]) for step in drafts) == server.counted(
        "spec_decode_num_draft_tokens"
    )


def test_killed_in_the_middle(server):
    before = set(server.folder.iterdir())
    asked = threading.Thread(target=server.ask_all, args=(PROMPTS[:40],), kwargs={"ignore_eos": True, "max_tokens": 200})  # fmt: skip
    asked.start()
    until = time.monotonic() + 120
    while sum(path.stat().st_size for path in set(server.folder.iterdir()) - before) < 300_000:
        assert time.monotonic() < until
        time.sleep(0.05)
    server.kill()
    asked.join()
    time.sleep(3)  # the writer reads what is left, and ends
    cut = set(server.folder.iterdir()) - before
    assert len(cut) > 5
    for path in cut:
        text = path.read_text("utf-8")
        assert text.endswith("\n")
        kinds = [json.loads(line)["kind"] for line in text.splitlines()]
        assert kinds[0] == "run" and set(kinds[1:]) <= {"step", "summary"}


@pytest.mark.parametrize("setting", [DRAFT, NGRAM], ids=lambda setting: setting["method"])
def test_what_recording_costs(setting, capsys):
    """Printed: it depends on what else the machine does."""
    command = [PYTHON, "-m", "tests.serving.recorder_cost", family().target, json.dumps(setting)]
    told = subprocess.run(
        [*command, "64", "32", "8"], env=environment(), capture_output=True, text=True, check=True
    )
    figures = json.loads(told.stdout.strip().splitlines()[-1])
    with capsys.disabled():
        print(
            f"\n{setting['method']}: {figures['longer']:+.1%} of a round, {figures['longer_by_pair']:+.1%} by pair, "
            f"{figures['taps']:.1%} of it in vLLM"
        )
    assert len(figures["on"]) == len(figures["off"]) == 8
