"""Records of requests to vLLM, without vLLM: every line fits what was sampled, within bounds, and no request fails of it."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest
import torch

from engine.serving.vllm.record_pipe import RecordPipe
from engine.serving.vllm.recorder_plugin import register, settings_of
from engine.serving.vllm.step_taps import likeliest
from engine.trace import read_trace
from tests.engine.small_vllm import ABOUT, DirectPipe, SmallRunner, recorded, step


def traces(folder) -> dict:
    found = [read_trace(path) for path in folder.glob("*.ndjson")]
    return {trace.run["recorded"]["request"]: trace for trace in found}


def tokens_of(trace) -> list[int]:
    return [token for each in trace.steps for token in each["output"]["tokens"]]


@pytest.mark.parametrize("drawn", [True, False])
def test_a_record_tells_what_was_sampled(tmp_path, monkeypatch, drawn):
    torch.manual_seed(1)
    runner, pipe = SmallRunner(monkeypatch, drawn), DirectPipe(tmp_path)
    recorded(runner, pipe)
    runner.add("warm")
    runner.add("cold", temperature=0.0)
    seen = []
    for _ in range(30):
        step(runner)
        seen.append(runner.last)
    step(runner, ["warm", "cold"])
    found = traces(tmp_path)
    assert set(found) == {"warm", "cold"}
    kept_of_all = 0
    for order, name in enumerate(("warm", "cold")):
        trace, written = found[name], runner.written[name]
        cut = written.index(0) + 1 if 0 in written else len(written)
        assert tokens_of(trace) == written[:cut]
        assert trace.summary["stop"] == ("eos" if 0 in written else "cancelled")
        for index, (line, last) in enumerate(zip(trace.steps, seen, strict=False)):
            nodes, rows = line["nodes"], slice(order * 4, order * 4 + 4) if index else slice(0, 0)
            p = last.logits.double().softmax(-1)[rows]
            drafted = last.drafted[rows].long()
            assert nodes["token"] == drafted.tolist()
            expected = p.gather(1, drafted[:, None])[:, 0].tolist()
            for value, told, status in zip(expected, nodes["p"], nodes["status"], strict=True):
                assert told == pytest.approx(value, abs=1e-6) or (told, status) == (None, "ignored")
            if drawn:
                q = last.q[rows].gather(1, drafted[:, None])[:, 0]
                assert nodes["q"] == pytest.approx(q.tolist(), abs=1e-6)
            else:
                assert set(nodes["q"]) <= {None}
                assert all("one-hot" in source for source in nodes["source"])
            for entry in line["judgements"]:
                kept = nodes["status"][entry["node"]] == "accepted"
                kept_of_all += kept
                if name == "cold":
                    assert entry["accept"] == float(kept) and entry["coin"] is None
                else:
                    assert kept == (entry["coin"] < entry["accept"])
                    assert entry["rule"] == ("iid" if drawn else "one_hot")
            for place in line["distributions"]:
                row = p[place["node"] + 1]
                assert [one[2] for one in place["p"]][:8] == pytest.approx(
                    row.topk(8).values.tolist(), abs=1e-6
                )
    assert kept_of_all > 5


def test_the_text_ends_where_vllm_ends_it(tmp_path, monkeypatch):
    """The sampler knows no ends: what it keeps beyond is ignored, and counted."""
    torch.manual_seed(2)
    runner, pipe = SmallRunner(monkeypatch), DirectPipe(tmp_path)
    recorded(runner, pipe)
    names = [f"r{most}" for most in range(2, 12)]
    for most, name in enumerate(names, 2):
        runner.add(name, max_tokens=most, eos_token_id=None)
    for _ in range(12):
        step(runner)
    step(runner, names)
    found = traces(tmp_path)
    for most, name in enumerate(names, 2):
        trace = found[name]
        assert tokens_of(trace) == runner.written[name][:most]
        assert trace.summary["stop"] == "length"
        last = trace.steps[-1]
        judged = {entry["node"] for entry in last["judgements"]}
        for node, status in enumerate(last["nodes"]["status"]):
            assert (status == "ignored") == (node not in judged)
    assert sum(trace.summary["beyond_end"] for trace in found.values()) > 0


def test_padding_and_numbers_that_are_none(tmp_path):
    """vLLM fills a draft up with -1, and its logits may be NaN."""
    pipe = DirectPipe(tmp_path)
    begun = {"request": "a", "when": 0.0, "prompt": [5], "temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0,
             "seed": -1, "ends": [], "stops": [], "most": None}  # fmt: skip
    nan = float("nan")
    pipe.post(
        None,
        {
            "begun": [begun], "ended": [], "names": ["a"], "discarded": [False], "counts": [3], "rows": [0, 1],
            "written": torch.tensor([[7, 9, -1, -1]]), "drafted": torch.tensor([7, 8, -1]),
            "p": torch.tensor([0.5, nan]), "coins": torch.tensor([0.1, 0.2, 0.3]).double(),
            "top": torch.tensor([[7, 3], [1, 2]]), "top_p": torch.tensor([[0.5, 0.2], [nan, nan]]),
            "milliseconds": {"draft": 1.0, "verify": 2.0, "judge": 3.0},
        },
    )  # fmt: skip
    pipe.post(None, {"begun": [], "ended": ["a"]})
    (line,) = traces(tmp_path)["a"].steps
    assert line["nodes"]["token"] == [7, 8] and line["nodes"]["status"] == ["accepted", "rejected"]
    assert line["nodes"]["p"] == [0.5, None] and line["output"]["final"] == "recovered"
    assert [entry["accept"] for entry in line["judgements"]] == [0.5, 0.0]
    assert line["prefill"] == 2.0 and line["milliseconds"]["verify"] == 0.0


@pytest.mark.parametrize("width", [5, 512, 1000, 4096])
def test_the_likeliest_are_those_of_topk(width):
    logits = torch.randn(7, width, generator=torch.manual_seed(width))
    logits[0, -1] = logits[1, 0] = 9.0
    values, tokens = likeliest(logits, 8)
    expected = logits.topk(min(8, width))
    assert torch.equal(values, expected.values) and torch.equal(tokens, expected.indices)


def test_the_folder_stays_within_its_bytes(tmp_path, monkeypatch):
    runner, most = SmallRunner(monkeypatch), 300_000
    recorded(runner, DirectPipe(tmp_path, most))
    for number in range(6):
        runner.add(f"r{number}", eos_token_id=None, max_tokens=None)
    for _ in range(60):
        step(runner)
    assert most * 0.8 < sum(path.stat().st_size for path in tmp_path.iterdir()) <= most
    found = traces(tmp_path)  # each has its summary
    assert found and all(trace.summary["stop"] == "cancelled" for trace in found.values())
    for name, trace in found.items():
        assert tokens_of(trace) == runner.written[name][: trace.summary["new_tokens"]]


def test_a_share_of_the_requests_and_a_hostile_id(tmp_path, monkeypatch):
    runner, folder = SmallRunner(monkeypatch), tmp_path / "in"
    folder.mkdir()
    recorded(runner, DirectPipe(folder), share=0.5)
    for number in range(60):
        runner.add(f"../../{number}\n<b>")
    step(runner)
    files = list(folder.iterdir())
    assert 15 < len(files) < 45 and list(tmp_path.iterdir()) == [folder]
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in files)


def test_a_gap_ends_a_record(tmp_path, monkeypatch):
    runner, pipe = SmallRunner(monkeypatch), DirectPipe(tmp_path)
    recorded(runner, pipe)
    runner.add("a", eos_token_id=None)
    for full in (False, False, True, False, False):
        pipe.full = full
        step(runner)
    runner.add("b", eos_token_id=None)
    step(runner)
    step(runner, ["a", "b"])
    found = traces(tmp_path)
    assert found["a"].summary["steps"] == 2 and found["b"].summary["steps"] == 1


def test_a_failure_is_one_line_and_no_request_fails(tmp_path, monkeypatch, caplog):
    runner, pipe = SmallRunner(monkeypatch), DirectPipe(tmp_path)
    recorded(runner, pipe)
    runner.add("a", eos_token_id=None)
    step(runner)
    pipe.broken = "its writer has ended"
    for _ in range(5):
        step(runner)
    assert len(runner.written["a"]) >= 6
    assert [record.message for record in caplog.records if record.name == "vllm.draftscope"] == [
        "Draftscope has stopped recording: OSError: its writer has ended"
    ]


@pytest.mark.parametrize(
    "environment",
    [{"DRAFTSCOPE_RECORD_SHARE": "2"}, {"DRAFTSCOPE_RECORD_SHARE": "nan"}, {"DRAFTSCOPE_RECORD_BYTES": "1 MB"}],
)  # fmt: skip
def test_a_setting_that_makes_no_sense_is_one_line(environment, monkeypatch, caplog):
    assert settings_of({}) is None
    for name, value in {"DRAFTSCOPE_RECORD": "/nowhere", **environment}.items():
        monkeypatch.setenv(name, value)
    register()
    assert len(caplog.records) == 1 and "must be a whole number" in caplog.text


def test_what_vllm_loads_imports_nothing_heavy():
    code = (
        "import sys; from engine.serving.vllm import recorder_plugin; recorder_plugin.register(); "
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'torch', 'numpy', 'transformers', 'orjson', 'vllm'}))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


def test_a_writer_that_is_killed_leaves_whole_lines(tmp_path, monkeypatch):
    """The process itself, in the middle of its work; the requests go on."""
    runner = SmallRunner(monkeypatch)
    pipe = RecordPipe(str(tmp_path), 10_000_000, ABOUT)
    recorded(runner, pipe)
    for number in range(20):
        runner.add(f"r{number}", eos_token_id=None)
    until = time.monotonic() + 120
    while sum(path.stat().st_size for path in tmp_path.glob("*.ndjson")) < 5_000:
        step(runner)
        time.sleep(0.005)
        assert time.monotonic() < until and not pipe.broken
        # beside other tests, which leave no processor idle, the writer would not run at its own priority
        with suppress(OSError):
            os.sched_setscheduler(pipe._process.pid, os.SCHED_OTHER, os.sched_param(0))
            os.setpriority(os.PRIO_PROCESS, pipe._process.pid, 0)
    os.kill(pipe._process.pid, signal.SIGKILL)
    pipe._process.wait()
    while not pipe.broken:
        step(runner)
    for path in tmp_path.glob("*.ndjson"):
        text = path.read_text("utf-8")
        assert not text or text.endswith("\n"), "a file may have been opened just before"
        for line in text.splitlines():
            json.loads(line)
