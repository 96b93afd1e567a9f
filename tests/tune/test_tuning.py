"""A whole tuning on a tiny pair: its counts, its record, a stop, and what is refused."""

import json
import resource
from contextlib import contextmanager
from dataclasses import replace
from itertools import cycle, groupby

import pytest

from engine.__main__ import main
from engine.errors import UserError
from engine.parts.loading import load_models
from engine.run import RunRequest, open_run
from engine.sizes.verify_cost import LONGER, SETTLED, TURNS, prepared
from engine.tune import tuning
from engine.tune.prompt_sample import PromptText, Sample
from engine.tune.speed_prediction import Speed
from engine.tune.tuning import Tuning
from engine.tune.tuning_request import TuningRequest

PROMPTS = [PromptText(f"w1 w{i} w3 w1 w{i}", "ab"[i % 2]) for i in range(5, 13)]
NEW = 12


@pytest.fixture
def request_of(pair, quick):
    def make(**more) -> TuningRequest:
        asked = TuningRequest(
            pair, Sample.of(PROMPTS), ("chain", "prompt_lookup"), new_tokens=NEW, texts=(1, 2)
        )
        return replace(asked, **more)

    return make


def kept(lines) -> dict:
    """Return the counts by candidate, kind and number of prompts, without times."""
    names = ("drafter", "size", "verifier", "prompt_kind", "prompts")
    counted = ("positions", "steps", "new_tokens", "drafted", "lengths", "draft_passes")
    return {
        tuple(line[name] for name in names): [line[name] for name in counted]
        for line in lines
        if line["kind"] == "acceptance"
    }


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_counts_are_those_of_the_traces(request_of, pair, temperature):
    asked = request_of(drafters=("chain",), temperature=temperature, texts=(1,))
    found = kept(Tuning(asked).lines())
    rule = "rejection" if temperature else "greedy"
    # the times decide which lengths are counted on the most prompts
    prompts, length = max(
        (prompts, size)
        for drafter, size, verifier, kind, prompts in found
        if (drafter, verifier, kind) == ("chain", rule, "all")
    )
    positions, steps, new_tokens, *_ = found["chain", length, rule, "all", prompts]
    places, traced = {}, [0, 0]
    for prompt in asked.prompts.prompts[:prompts]:
        options = {"length": length}
        run = open_run(
            RunRequest(
                prompt.text, pair, "chain", options, max_new_tokens=NEW, temperature=temperature
            )
        )
        list(run.steps())
        summary = json.loads(run.summary())
        traced = [traced[0] + summary["steps"], traced[1] + summary["new_tokens"]]
        for row in summary["acceptance_by_depth"]:
            own = places.setdefault(row["depth"], [0, 0])
            own[0] += row["reached"]
            own[1] += row["accepted"]
    assert traced == [steps, new_tokens]
    assert {one["position"]: [one["reached"], one["accepted"]] for one in positions} == places
    assert any(accepted for _, accepted in places.values()), "the draft is sometimes right"


def test_a_stopped_tuning_goes_on_and_counts_what_an_uninterrupted_one_counts(request_of, tmp_path):
    whole = tmp_path / "whole.ndjson"
    lines = [
        line for line in Tuning(request_of(record=whole)).lines() if line["kind"] != "progress"
    ]
    written = whole.read_bytes().splitlines(keepends=True)
    assert [json.loads(line) for line in written] == lines
    assert lines[0]["kind"] == "tuning" and lines[-1]["kind"] == "answer"
    expected = kept(lines)
    acceptance = [place for place, line in enumerate(lines) if line["kind"] == "acceptance"]
    assert kept(Tuning(request_of(record=whole)).lines()).items() >= expected.items()
    for cut in (acceptance[1], acceptance[len(acceptance) // 2]):  # the first cuts a group of kinds
        torn = tmp_path / f"{cut}.ndjson"
        torn.write_bytes(b"".join(written[:cut]) + written[cut][:20])
        found = kept(Tuning(request_of(record=torn)).lines())
        shared = found.keys() & expected.keys()
        assert len(shared) > len(expected) / 2
        assert {key: found[key] for key in shared} == {key: expected[key] for key in shared}
        content = [json.loads(line) for line in torn.read_text("utf-8").splitlines()]
        assert content[:cut] == lines[:cut] and content[-1]["kind"] == "answer"
        # what was counted before the stop is not counted again
        units = [tuple(kept([line])) for line in content if line["kind"] == "acceptance"]
        repeated = {unit for unit in units if units.count(unit) > 1}
        assert repeated <= {tuple(kept([line])) for line in lines[acceptance[0] : cut]}


@pytest.mark.parametrize(("ratio", "measured"), [(1.5, {1, 2}), (0.7, {1})])
def test_passes_over_several_texts_are_timed_where_drafting_pays_for_one(
    request_of, monkeypatch, ratio, measured
):
    monkeypatch.setattr(tuning, "speed_of", lambda *_: Speed(100 * ratio, 100.0))
    lines = Tuning(request_of(drafters=("prompt_lookup",))).lines()
    assert {line["texts"] for line in lines if line["kind"] == "cost"} == measured


def test_a_stop_at_any_time_gives_the_answer_so_far(request_of, tmp_path):
    record = tmp_path / "r.ndjson"
    tuning = Tuning(request_of(record=record))
    assert tuning.answer_so_far() == []
    coming = tuning.lines()
    for line in coming:
        if line["kind"] == "acceptance" and line["drafter"] == "prompt_lookup":
            break
    coming.close()
    *_, told = tuning.answer_so_far()
    assert told["kind"] == "answer" and "checked" not in told
    assert json.loads(record.read_text("utf-8").splitlines()[-1]) == told


@contextmanager
def room(most: int):
    """Limit the size to which a file can grow, in bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_on_a_full_disk_what_was_measured_is_kept(request_of, tmp_path):
    record = tmp_path / "r.ndjson"
    tuning = Tuning(request_of(record=record))
    coming = tuning.lines()
    next(coming)
    with room(record.stat().st_size + 1000), pytest.raises(UserError, match="cannot be written"):
        list(coming)
    lines = [json.loads(line) for line in record.read_text("utf-8").splitlines()]
    assert [line["kind"] for line in lines][:2] == ["tuning", "acceptance"]
    list(
        Tuning(request_of(record=record, drafters=("prompt_lookup",))).lines()
    )  # it can be gone on with


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("dear diary\n", "no record of a tuning"),
        ("dear diary", "no record of a tuning"),
        ('{"kind": "run"}\n', "no record of a tuning"),
        ('{"kind": "tuning", "schema": 1}\n', "another machine"),
    ],
)
def test_a_file_that_is_no_record_of_it_stays_as_it_is(request_of, tmp_path, content, why):
    record = tmp_path / "r.ndjson"
    record.write_text(content, "utf-8")
    with pytest.raises(UserError, match=why):
        next(Tuning(request_of(record=record)).lines())
    assert record.read_text("utf-8") == content


@pytest.mark.parametrize("broken", ['{"kind": "acceptance"}', '{"kind": "cost", "rows": "x"}', "7"])
def test_a_record_that_was_tampered_with_is_refused(request_of, tmp_path, broken):
    record = tmp_path / "r.ndjson"
    coming = Tuning(request_of(record=record)).lines()
    next(coming)
    coming.close()
    with record.open("a", encoding="utf-8") as file:
        file.write(broken + "\n")
    with pytest.raises(UserError, match="no record of a tuning"):
        next(Tuning(request_of(record=record)).lines())


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (("--drafters", "bild"), "does not keep the target's text"),
        (("--drafters", "pearl"), "loop of its own"),
        (("--drafters", "eagle"), "none was given"),
        (("--drafters", "chian"), "did you mean chain"),
        (("--drafters", "none"), "Name a drafter"),
        (("--new-tokens", "200"), "No prompt can be used"),
        (("--new-tokens", "0"), "between 8 and 4096"),
        (("--machine", "abacus"), "There is no machine"),
        (("--costs", "1"), "Costs are pairs"),
        (("--prompts", "nowhere.txt"), "cannot be read"),
        (("--record", "/nowhere/r.ndjson"), "cannot be written"),
    ],
)
def test_a_mistake_ends_in_a_line(pair, flags, why, capsys, tmp_path):
    prompts = tmp_path / "p.txt"
    prompts.write_text("w1 w2 w3\n", "utf-8")
    models = ("--target", pair.target, "--draft", pair.parts["draft"])
    assert main(["tune", *models, "--prompts", str(prompts), *flags]) == 2
    told = capsys.readouterr()
    assert why in told.err and len(told.err.splitlines()) == 1 and not told.out


def test_a_draft_with_another_vocabulary_is_refused(pair, capsys):
    from presets import family

    code = main(["tune", "--target", pair.target, "--draft", family().parts["draft"]])
    assert code == 2 and "another vocabulary" in capsys.readouterr().err


def test_the_command_answers_first_and_keeps_estimates_apart(pair, quick, capsys, tmp_path):
    prompts, record = tmp_path / "p.txt", tmp_path / "r.ndjson"
    prompts.write_text("w1 w2 w3 w1\nw4 w5 w4 w5\n", "utf-8")
    models = ("--target", pair.target, "--draft", pair.parts["draft"], "--drafters", "chain")
    common = ("tune", *models, "--prompts", str(prompts), "--new-tokens", "8", "--machine", "l4")
    assert main([*common, "--record", str(record)]) == 0
    text = capsys.readouterr().out
    assert main([*common, "--record", str(record), "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert text.startswith(lines[-1]["sentence"][:12]) and lines[-1]["kind"] == "answer"
    measured, estimated = text.split("An estimate for NVIDIA L4; nothing was measured there:")
    assert "estimate" not in measured and "checked" not in estimated
    assert {line["kind"] for line in lines} == {
        "tuning", "cost", "acceptance", "setting", "estimate", "answer",
    }  # fmt: skip


def test_passes_of_several_sizes_take_turns(pair):
    """A busy moment of the machine would otherwise fall on all passes over one number of rows."""
    target = load_models(pair, {}).target
    passes, asked = prepared(target, 1, 20, (1, 4)), []
    passes.milliseconds = lambda rows: asked.append(rows) or 1.0
    times_of = passes.in_turn((1, 4))
    turns = [rows for rows, _ in groupby(asked)]
    assert turns == [1, 4] * TURNS
    assert asked.count(4) > SETTLED * TURNS, "the first passes of a turn are not timed"
    assert {rows: len(times) for rows, times in times_of.items()} == dict.fromkeys((1, 4), TURNS)
    assert [len(times) for times in passes.in_turn((1, 4), sure=True).values()] == [TURNS] * 2
    busy = cycle([41.0, 41.0, 41.0, 90.0])
    passes.milliseconds = lambda rows: next(busy)
    assert len(passes.in_turn((1,))[1]) == TURNS
    assert len(passes.in_turn((1,), sure=True)[1]) == TURNS * LONGER, "not steady"
    passes.milliseconds = lambda rows: 1.0
    assert list(passes.in_turn((1, 4), dearest=0.5)) == [1], "longer ones would be dearer still"
