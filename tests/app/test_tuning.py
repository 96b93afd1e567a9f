"""What the Tune tab measures on, and what it asks of the server: visitors' prompts and files within bounds, hostile ones
refused in a sentence."""

import json
from dataclasses import replace

import pytest

from app import link, tuning
from app.controls import RANGES
from app.menu import offer
from app.settings import LIMITS
from app.tune import FIELDS, PROMPTS
from app.tune_files import tune_estimate, tune_export, tune_five, tune_import
from app.tuning import TuningJob, pasted, sample, together, tuning_job
from engine.errors import UserError
from engine.sizes import verify_cost
from engine.tune.prompt_sample import PromptText, Sample
from engine.tune.tuning_request import TuningRequest
from presets import family

SMALL = replace(LIMITS, tune_kilobytes=1, tune_prompts=3, prompt_characters=40)


def asked(text: str = "", source: str = "pasted", kinds: tuple = (), name: str = "") -> str:
    return json.dumps({"source": source, "kinds": list(kinds), "text": text, "name": name})


def texts(found: Sample) -> list[str]:
    return [one.text for one in found.prompts]


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("a\nb\n", ["a", "b"]),
        ("\n\na\n", ["a"]),
        ("a\nb\n\n \nc", ["a\nb", "c"]),
        ("a\r\nb", ["a", "b"]),
    ],
)
def test_pasted_prompts_stand_on_lines_or_between_empty_lines(said, read):
    assert [one.text for one in pasted(said)] == read


def test_a_file_is_read_by_its_ending():
    line = '{"prompt": "a", "kind": "k"}\n'
    assert sample(asked(line, "file", name="x.JSONL"), "", 0).prompts == (PromptText("a", "k"),)
    assert texts(sample(asked("text\n=1+1\n", "file", name="x.csv"), "", 0)) == ["=1+1"]
    assert texts(sample(asked(line, "file", name="x.txt"), "", 0)) == [line.strip()]


def test_the_kinds_of_this_page_are_a_choice():
    two = sample(asked(source="ours", kinds=("story", "code", "nonsense", 7)), "", 0)
    assert {one.kind for one in two.prompts} == {"story", "code"}
    every = sample(asked(source="ours"), "", 0)
    assert len({one.kind for one in every.prompts}) == 6 and len(every.prompts) == 18


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (None, "must be text"),
        ("", "choose them again"),
        ("[]", "choose them again"),
        ("{}", "choose them again"),
        ("[" * 100_000, "choose them again"),
        (json.dumps({"source": "file", "kinds": 1, "text": "", "name": ""}), "choose them again"),
        (json.dumps({"source": "file", "kinds": [], "text": [], "name": ""}), "choose them again"),
        (asked(" \n\t\n"), "Paste a prompt first"),
        (asked("x" * 1001), "more than 1 kB"),
        (asked("ok\n" + "x" * 41), "Prompt 2 has 41 characters"),
        (asked("{}", "file", name="a.jsonl"), 'no field "prompt" or "text"'),
        (asked("{", "file", name="<b>\x00.jsonl"), "is not valid JSON"),
        (asked("a,b\n1,2", "file", name="a.csv"), 'no column "prompt" or "text"'),
    ],
)
def test_prompts_that_do_not_fit_are_refused_in_a_sentence(given, told):
    with pytest.raises(UserError, match=told) as refused:
        sample(given, "", 0, SMALL)
    assert "\n" not in str(refused.value) and "\x00" not in str(refused.value)


def test_of_many_prompts_a_sample_is_measured():
    found = sample(asked("\n".join(f"prompt {n}" for n in range(60))), "", 0, SMALL)
    assert found.given == 60 and len(found.prompts) == 3


def test_fewer_texts_share_a_pass_where_their_keys_and_values_are_large():
    found = Sample.of([PromptText("x" * 100)])
    assert together(family(), found, 28) == (1, 2, 4, 8)
    one = replace(LIMITS, kv_megabytes=3)
    assert together(family(), found, 28, one)[0] == 1
    assert len(together(family(), found, 28, one)) < 4
    with pytest.raises(UserError, match="Take shorter ones"):
        together(family(), Sample.of([PromptText("x" * 4000)]), 28, replace(one, kv_megabytes=1))


@pytest.mark.parametrize("name", ["prompts", "temperature", "models", "seed"])
@pytest.mark.parametrize("given", [float("nan"), [1], {"a": 1}, "x" * 9, -1])
def test_controls_that_make_no_sense_are_refused(name, given):
    values = dict(zip(FIELDS, [PROMPTS, *(r.default for r in RANGES.values()), ""], strict=True))
    with pytest.raises(UserError):
        tuning_job({**values, name: given})


@pytest.fixture(scope="module", autouse=True)
def one_turn():
    """Time the passes over each number of rows in one turn: nothing here compares times."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(verify_cost, "TURNS", 1)
        yield


@pytest.fixture(scope="module")
def stopped() -> str:
    """Return the record of a small tuning that was stopped once it had measured something of every candidate."""
    prompts = Sample.of([PromptText("Once upon a time"), PromptText("1 + 1 =", "sums")])
    request = TuningRequest(
        family(), prompts, drafters=("prompt_lookup",), new_tokens=8, texts=(1,)
    )
    job = TuningJob(request)
    text = job.header()
    for line in job.steps():
        text += line
        if '"kind":"setting"' in line and '"kind":"cost"' in text:
            break
    job.cancel()
    return text + job.summary()


def test_a_tuning_that_is_stopped_ends_with_its_answer(stopped):
    lines = [json.loads(line) for line in stopped.splitlines()]
    assert lines[0]["kind"] == "tuning" and lines[0]["family"] == ""
    last = lines[-1]
    assert last["kind"] == "answer" and last["preset_link"]["prompt"] == "Once upon a time"
    assert {line["kind"] for line in lines} >= {"cost", "acceptance", "setting", "progress"}


def test_an_answer_before_the_end_is_of_a_setting_that_is_known(monkeypatch):
    monkeypatch.setattr(tuning, "EVERY", 0.0)
    prompts = Sample.of([PromptText(f"{n} + {n} =") for n in range(5)])
    request = TuningRequest(
        family(), prompts, drafters=("prompt_lookup",), new_tokens=8, texts=(1,)
    )
    job, lines = TuningJob(request), []
    for told in job.steps():
        lines += map(json.loads, told.splitlines())
        if lines[-1]["kind"] == "answer":
            break
    job.cancel()
    answer = lines[-1].get("best_tried", lines[-1])
    tried = [
        line["prompts"]
        for line in lines
        if line["kind"] == "acceptance"
        and all(line[name] == answer[name] for name in ("drafter", "size"))
    ]
    assert tried[-1] >= tuning.FEWEST


def kept(record: str) -> str:
    """Return the record as the browser sends it: without lines of progress."""
    return "".join(line for line in record.splitlines(True) if '"kind":"progress"' not in line)


def estimated(record: str, **wish: str) -> dict:
    return tune_estimate({"record": kept(record), **wish})


def test_estimates_are_made_of_what_was_kept(stopped):
    told = estimated(stopped, costs="1:10,64:10")
    lines = [json.loads(line) for line in told["lines"].splitlines()]
    assert lines and {line["kind"] for line in lines} == {"estimate"}
    assert all(line["plain"] == 100.0 for line in lines), "10 ms a token, whatever the rows"
    assert estimated(stopped, machine="H200")["lines"]
    assert "1:20" in estimated(stopped, costs="x")["error"]
    assert "no machine" in estimated(stopped, machine="<b>")["error"]


def test_five_numbers_of_counts():
    counts = {"steps": 100, "drafted": 200, "new_tokens": 215}
    counts["positions"] = [
        {"position": 1, "reached": 100, "accepted": 80},
        {"position": 2, "reached": 80, "accepted": 40},
    ]
    told = tune_five(counts)["numbers"]
    assert [one["value"] for one in told] == ["0.60", "0.80 · 0.50", "2.20", "1.20", "2.15"]
    told = tune_five({"positions": counts["positions"]})["numbers"]
    assert [one["value"] for one in told] == ["", "0.80 · 0.50", "", "", ""]


HOSTILE = (
    *(None, 7, [], {}, "x", "{}", "[" * 100_000, '{"kind": "answer"}', '{"kind": "tuning"}\n[]'),
    '{"kind":"tuning"}\n{"kind":"acceptance","drafter":"none","size":-1,"prompt_kind":"all"}',
    '{"kind":"tuning","draft":7,"target":{"parameters":"x"},"texts":"x"}',
    "x" * (LIMITS.trace_bytes + 1),
)


@pytest.mark.parametrize("given", HOSTILE, ids=range(len(HOSTILE)))
def test_whatever_a_browser_sends_is_answered_in_a_sentence(given):
    answers = [
        tune_export(given),
        tune_export({"record": given, "engine": "vllm"}),
        tune_export({"record": '{"kind": "answer"}', "engine": given}),
        tune_import(given),
        tune_import({"name": "a.json", "text": given}),
        tune_estimate({"record": given, "costs": "1:2"}),
        tune_estimate({"record": '{"kind":"tuning"}', "machine": given}),
        tune_five(given),
        tune_five({"positions": given}),
        tune_five({"positions": [{"reached": given, "accepted": 1}, given]}),
    ]
    for answer in answers:
        assert set(answer) in ({"error"}, {"numbers"})
        assert "\n" not in answer.get("error", "") and len(answer.get("error", "")) < 400


def test_an_address_is_a_wish():
    read = link.read_tune
    assert read({"kinds": "story"}, offer()) == {}
    told = read({"tab": "tune", "kinds": "story code", "t": "9", "n": "x", "models": "y"}, offer())
    assert told["prompts"] == {"source": "ours", "kinds": ["story", "code"]}
    assert told["temperature"] == 2 and "models" not in told
    long = read({"tab": "tune", "prompts": "x" * 9999, "kinds": "story"}, offer())
    assert long["prompts"] == {"source": "pasted", "text": "x" * LIMITS.prompt_characters}
