"""Other engines' records become acceptance lines; what a source lacks stays absent, and a broken one is one sentence."""

import json

import pytest

from engine.__main__ import main
from engine.bridges.acceptance_numbers import numbers_of
from engine.bridges.importing import imported, imported_text
from engine.errors import UserError
from engine.trace import read_trace
from presets import trace_text
from tests.bridges.records import (
    BY_LENGTH,
    DETAILED,
    GAUGES,
    KEPT_ONLY,
    LLAMA,
    OLD_SGLANG,
    POSITIONS,
    SGLANG,
    SHORTER,
    VLLM,
    metrics,
    streamed,
    vllm,
)

COUNTED = {
    "vLLM, every step": json.dumps(vllm(DETAILED)),
    "vLLM, by length": json.dumps(vllm(BY_LENGTH)),
    "vLLM, a summary": json.dumps(vllm(VLLM)),
    "vLLM, cut out of the answer": json.dumps(DETAILED),
    "vLLM, streamed": streamed({"id": "a", "choices": []}, vllm(DETAILED)),
    "vLLM, counters": metrics(),
    "llama.cpp, counters": metrics("llamacpp"),
    "SGLang, /generate": json.dumps({"text": "x", "meta_info": SGLANG}),
    "SGLang, older": json.dumps({"text": "x", "meta_info": OLD_SGLANG}),
    "SGLang, chat": json.dumps({"choices": [], "sglext": {"spec_tokens_details": SGLANG}}),
    "SGLang, in a choice": json.dumps({"choices": [{"meta_info": SGLANG}]}),
}


@pytest.mark.parametrize("source", COUNTED)
def test_the_same_steps_are_the_same_counts_from_every_source(source):
    (line,) = imported_text(COUNTED[source], "file")
    assert line["source"]["engine"] == source.partition(",")[0]
    assert line["positions"] == POSITIONS
    assert (line["steps"], line["drafted"], line["accepted"]) == (3, 9, 4)
    assert "drafter" not in line and "options" not in line, "none of them names the drafter"
    assert numbers_of(line)["mean_with_bonus"] == pytest.approx(7 / 3)


def test_several_answers_are_added_up():
    two = "\n".join(json.dumps(vllm(DETAILED, name)) for name in "ab")
    for text in (two, json.dumps([vllm(DETAILED, "a"), vllm(VLLM, "b")])):
        (line,) = imported_text(text, "file")
        assert (line["steps"], line["requests"], line["new_tokens"], line["size"]) == (6, 2, 14, 3)
        assert line["positions"][1] == {"position": 2, "reached": 4, "accepted": 2}


def test_chunks_of_a_stream_repeat_what_was_counted():
    halfway = {**LLAMA, "draft_n": 6, "draft_n_accepted": 3}
    (line,) = imported_text(streamed({"timings": halfway}, {"timings": LLAMA}), "file")
    assert (line["drafted"], line["accepted"]) == (9, 4)
    (line,) = imported_text(streamed({"timings": LLAMA}) + streamed({"timings": LLAMA}), "file")
    assert (line["drafted"], line["requests"]) == (18, 2)


def test_what_a_source_lacks_stays_absent():
    (line,) = imported_text(json.dumps({"timings": LLAMA}), "file")
    assert not {"positions", "steps", "drafter", "size"} & line.keys()
    assert line["milliseconds"] == {"total": 35.0} and line["new_tokens"] == 7
    assert numbers_of(line)["kept_share"] == 4 / 9 and numbers_of(line)["mean_with_bonus"] is None
    for text in (json.dumps(vllm(SHORTER)), metrics(drafted=8)):
        (line,) = imported_text(text, "file")
        assert line["positions"] == KEPT_ONLY and line["source"]["lacks"]
    (line,) = imported_text(GAUGES, "file")
    assert line["stated"] == {"mean_with_bonus": 2.5, "mean_without_bonus": 1.5, "kept_share": 0.5}
    assert line["steps"] == 40 and "positions" not in line


def test_servers_side_by_side_are_added_up():
    more = metrics().replace('engine="0"', 'engine="1"')
    (line,) = imported_text(metrics() + more, "file")
    assert line["steps"] == 6 and line["positions"][0] == {
        "position": 1,
        "reached": 6,
        "accepted": 4,
    }


def test_our_own_traces(tmp_path):
    trace = read_trace(trace_text("story-chain"))
    for name in "ab":
        (tmp_path / f"{name}.ndjson").write_text(trace.to_ndjson())
    (line,), (alone,) = imported([tmp_path]), imported([tmp_path / "a.ndjson"])
    assert line["drafter"] == "chain" and line["options"] == trace.run["drafter"]["options"]
    assert line["steps"] == 2 * len(trace.steps) == 2 * alone["steps"]
    kept = sum(step["nodes"]["status"].count("accepted") for step in trace.steps)
    assert alone["accepted"] == kept == sum(each["accepted"] for each in alone["positions"])
    assert numbers_of(alone)["block_efficiency"] == pytest.approx(
        trace.summary["mean_accepted"], abs=0.01
    )


@pytest.mark.parametrize(
    "depths",
    [
        [{"depth": 1, "reached": 1, "judged": 1, "accepted": 2}],
        [{"depth": 5, "reached": 1, "judged": 1, "accepted": 1}],
    ],
)
def test_a_trace_whose_sums_are_wrong_is_one_sentence(depths):
    trace = read_trace(trace_text("story-chain"))
    trace.summary["acceptance_by_depth"] = depths
    assert "contradicts itself" in refused(lambda: imported_text(trace.to_ndjson(), "file"))


def test_a_log_of_specspecs(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = {"draft_tokens": [[5, 6, 7]] * 3, "acceptance_length": [0, 3, 1]}
    parquet.write_table(pyarrow.table(rows), tmp_path / "drafts-1-00000.parquet")
    for path in (tmp_path, tmp_path / "drafts-1-00000.parquet"):
        (line,) = imported([path])
        assert line["positions"] == POSITIONS and line["source"]["engine"] == "specspecs"
    for broken in (
        {"draft_tokens": [[1]], "acceptance_length": [2]},
        {"a": [1]},
        {"draft_tokens": [1], "acceptance_length": [0]},
    ):
        parquet.write_table(pyarrow.table(broken), tmp_path / "drafts-1-00000.parquet")
        refused(lambda: imported([tmp_path]))


def test_without_pyarrow_a_sentence_says_so(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    for content in (b"PAR1", b"PAR1" + b"\0" * 40):
        (tmp_path / "drafts-1.parquet").write_bytes(content)
        assert "pip install pyarrow" in refused(lambda: imported([tmp_path]))


def spoiled(record, **changes):
    return json.dumps(vllm({**record, **changes}))


def prometheus(line):
    return f"{metrics()}vllm:{line}\n"


BROKEN = {
    "vllm: more kept than drafted": spoiled(DETAILED, per_step_drafted=[3, 2, 3]),
    "vllm: steps of two lengths": spoiled(DETAILED, per_step_drafted=[3, 3]),
    "vllm: a negative count": spoiled(DETAILED, per_step_accepted=[0, 3, -1]),
    "vllm: half a token": spoiled(DETAILED, per_step_accepted=[0.5, 3, 1]),
    "vllm: infinity": spoiled(DETAILED, per_step_accepted=[0, float("inf"), 1]),
    "vllm: too many tokens": spoiled(
        DETAILED, per_step_accepted=[0, 10**9, 1], per_step_drafted=[3, 10**9, 3]
    ),
    "vllm: steps that do not add up": spoiled(DETAILED, num_spec_steps=4),
    "vllm: tokens that do not add up": spoiled(DETAILED, num_accepted_draft_tokens=5),
    "vllm: a size in words": spoiled(VLLM, num_spec_tokens="a" * 99),
    "vllm: a histogram of nothing": spoiled(VLLM, acceptance_histogram=None),
    "vllm: a field less": json.dumps(vllm({"num_spec_steps": 3})),
    "vllm: off": json.dumps({"id": "a", "choices": [], "metrics": {"speculative_decoding": None}}),
    "sglang: steps that do not add up": json.dumps({"meta_info": {**SGLANG, "spec_verify_ct": 4}}),
    "sglang: true for a count": json.dumps(
        {"meta_info": {**SGLANG, "spec_num_correct_drafts": True}}
    ),
    "sglang: more kept than drafted": json.dumps(
        {"meta_info": {**SGLANG, "spec_num_proposed_drafts": 3}}
    ),
    "sglang: no steps": json.dumps({"meta_info": {"spec_verify_ct": None}}),
    "sglang: workers that differ": GAUGES.replace('"1"} 2.5', '"1"} 3.5'),
    "sglang: a gauge of nothing": "sglang:spec_accept_length NaN\n",
    "llama.cpp: more kept than drafted": json.dumps({"timings": {**LLAMA, "draft_n_accepted": 10}}),
    "llama.cpp: a field less": json.dumps({"timings": {"draft_n": 9}}),
    "llama.cpp: a list": json.dumps({"timings": {**LLAMA, "draft_n": [9]}}),
    "llama.cpp: NaN": '{"timings": {"draft_n": NaN, "draft_n_accepted": 0}}',
    "llama.cpp: a huge number": '{"timings": {"draft_n": 1'
    + "0" * 400
    + ', "draft_n_accepted": 0}}',
    "llama.cpp: without drafts": json.dumps({"timings": {"predicted_n": 7}}),
    "counters: of nothing": prometheus('spec_decode_num_drafts_total{engine="1"} NaN'),
    "counters: negative": prometheus('spec_decode_num_drafts_total{engine="1"} -1'),
    "counters: half": prometheus('spec_decode_num_drafts_total{engine="1"} 0.5'),
    "counters: no value": prometheus('spec_decode_num_drafts_total{engine="1"}'),
    "counters: a label that is open": prometheus('spec_decode_num_drafts_total{engine="1 3'),
    "counters: a position that is missing": metrics(accepted=3).replace(
        'position="1"', 'position="7"'
    ),
    "counters: positions that rise": metrics(kept=(1, 1, 2)),
    "counters: more kept than drafts": metrics(drafts=1, drafted=3, accepted=4),
    "counters: tokens that do not add up": metrics(accepted=5),
    "counters: of something else": "# HELP process_open_fds Files.\nprocess_open_fds 12.0\n",
    "empty": "",
    "no json": "hello",
    "a cut file": json.dumps(vllm(DETAILED))[:-20],
    "a list of lists": "[[1]]",
    "a null": "null",
    "deep": "[" * 100_000,
    "a trace cut off": '{"kind":"run","schema":1}',
    "a record with a broken position": '{"kind":"acceptance","positions":[{"position":1,"reached":1,"accepted":2}]}\n',
    "a record of another kind": '{"kind":"tuning"}\n{"kind":"other"}\n',
    "a record without acceptance": '{"kind":"tuning"}\n',
    "a record with a list for a line": '{"kind":"tuning"}\n[1]\n',
}


def refused(work) -> str:
    """Run ``work``, and return the sentence with which it is refused."""
    with pytest.raises(UserError) as told:
        work()
    sentence = str(told.value)
    assert sentence.endswith(".") and "\n" not in sentence and len(sentence) < 400
    return sentence


@pytest.mark.parametrize("way", BROKEN)
def test_a_broken_source_is_one_sentence(way):
    refused(lambda: imported_text(BROKEN[way], "file"))


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\xff")
    for name in ("missing", "empty", "bytes", "a\0b"):
        refused(lambda name=name: imported([tmp_path / name]))
    traces = tmp_path / "traces"
    traces.mkdir()
    (traces / "b.ndjson").write_text("{}\n")
    assert "b.ndjson" in refused(lambda: imported([traces]))
    (tmp_path / "large").write_text("x" * 2000)
    monkeypatch.setattr("engine.bridges.record_lines.MOST_BYTES", 1000)
    assert "larger" in refused(lambda: imported([tmp_path / "large"]))


def test_the_command_prints_a_table_and_keeps_the_lines(tmp_path, capsys):
    source, out = tmp_path / "answers.json", tmp_path / "record.ndjson"
    source.write_text(json.dumps(vllm(DETAILED)))
    kept = '{"kind":"tuning","schema":1}\n'
    out.write_text(kept + '{"kind":"cost","ro')  # its writer was stopped
    assert main(["import", str(source), "--record", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "vLLM: answers.json" in shown and "44.4%" in shown and "0.67 0.50 1.00" in shown
    lines = out.read_text().splitlines()
    assert (
        lines[0] + "\n" == kept
        and json.loads(lines[1])["positions"] == POSITIONS
        and len(lines) == 2
    )
    assert imported([out]) == imported([source])
    assert main(["import", str(tmp_path / "none")]) == 2
    other = tmp_path / "other.txt"
    other.write_text("a diary")
    assert main(["import", str(source), "--record", str(other)]) == 2
    assert other.read_text() == "a diary"
