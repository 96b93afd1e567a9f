"""The suite of the real chat model: its prompts and goals, and a race of tiny models from end to end."""

import json

import pytest

from engine.__main__ import main
from engine.bench import real_suite
from engine.bench.agreement import Difference
from engine.bench.bench_figures import rows
from engine.bench.contestants import Contestant, Writing
from engine.bench.goals import goal_table
from engine.bench.openvino.openvino_peers import GenAiContestant
from engine.bench.peers_suite import Race
from engine.bench.real_suite import CHOOSER, real_goals
from engine.bench.suite import Plan, Prompt, Result, Suite
from engine.errors import UserError
from presets import TURNS, prompts
from presets.fetched import SETTING, sources

CONTEXT = 8192
TEMPLATE = 400  # bytes that a chat template adds at most
GROUPS = {
    "transformers": "plain",
    "assisted": "assisted",
    "openvino": "plain",
    "openvino lookup": "lookup",
    "openvino default lookup": "lookup",
    "none": "ours",
    "chain": "ours",
    "suffix": "ours",
    "eagle of 6": "ours",
    CHOOSER: CHOOSER,
}
SECONDS = {
    "transformers": 8, "assisted": 5, "openvino": 4, "openvino lookup": 2, "openvino default lookup": 0.1,
    "none": 4, "chain": 2, "suffix": 1, "eagle of 6": 4, CHOOSER: 2,
}  # fmt: skip


def test_every_kind_has_enough_prompts_none_twice_and_all_within_the_context():
    found = {kind: prompts(kind) for kind in TURNS}
    assert len(found) == 8 and all(len(cards) >= 6 for cards in found.values())
    cards = [card for some in found.values() for card in some]
    for field in ("id", "prompt"):
        assert len({card[field].strip().lower() for card in cards}) == len(cards)
    for card in cards:
        # no token is shorter than a byte
        size = len(card["prompt"].encode()) + TEMPLATE + real_suite.FULL.tokens
        assert 0 < len(card["prompt"].strip()) and size <= CONTEXT, card["id"]


def test_a_model_that_was_not_fetched_is_one_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(SETTING, str(tmp_path))
    assert main(["bench", "--suite", "real", "--quick"]) == 2
    told = capsys.readouterr()
    assert told.out == "" and told.err.count("\n") == 1
    assert sources()["smollm2"].name in told.err and "make real" in told.err


def race(absent=(), kinds=("coding", "json")) -> Race:
    """A race in which each contestant wrote 8 tokens after one prompt of each kind. On ``json``, suffix is slow and
    chain writes another text."""
    results = []
    for name in GROUPS:
        for kind in kinds:
            seconds = 8 if (name, kind) == ("suffix", "json") else SECONDS[name]
            calls = 4 if name == "eagle of 6" else 8
            writing = Writing(list(range(8)), seconds, calls)
            if name not in absent:
                results.append(Result(name, Prompt(kind, f"{kind}-01", [1]), 0, writing))
    different = [Difference("chain", "json-01", 3, 0.5)]
    taken = {name: kind for name, kind in GROUPS.items() if name not in absent}
    suite = Suite([], [], Plan(1, 1, 8))
    return Race(None, suite, results, rows(results, taken), {0: 20.0, 8: 25.0}, different)


def test_goals_take_the_best_of_each_kind():
    by_name = {goal.what: goal for goal in real_goals(race(), {})}
    assert by_name["texts of this engine that equal generate"].value == pytest.approx(9 / 10)
    assert by_name["none / openvino"].value == pytest.approx(1)
    assert by_name["best drafter / none"].value == pytest.approx(8**0.5)
    assert by_name["best drafter / none, least kind"].value == pytest.approx(2)
    fast = by_name["best drafter / transformers' best speculation"]
    assert fast.value == pytest.approx((5 * 2.5) ** 0.5) and fast.met
    fast = by_name["best drafter / openvino's best speculation"]
    assert fast.value == pytest.approx(2**0.5), "another precision is no rival"
    assert by_name["auto / best drafter, least kind"].value == pytest.approx(1 / 2)
    assert by_name["auto / none, least prompt"].value == pytest.approx(2)
    assert by_name["eagle of 6, tokens a pass"].value == pytest.approx(2)
    assert by_name["chain of 4, tokens a pass"].met is None


def test_whoever_did_not_come_has_a_reason():
    gone = [name for name in GROUPS if name.startswith("openvino") or name == CHOOSER]
    found = real_goals(race(gone), {"openvino": "It is not there."})
    lacking = {goal.what: goal.reason for goal in found if goal.value is None}
    assert lacking["none / openvino"] == "It is not there."
    assert lacking["best drafter / openvino's best speculation"] == "It is not there."
    assert lacking["auto / none, least prompt"] == "there is no drafter auto"
    assert "It is not there." in goal_table(found)


def test_the_table_has_a_column_for_each_kind_and_says_which_texts_are_equal():
    shown = real_suite.real_text(race(), real_goals(race(), {}))
    lines = {line.split("  ")[0]: line for line in shown.splitlines()}
    assert lines["contestant"].split()[1:4] == ["coding", "json", "mean"]
    assert lines["chain"].split()[1:4] == ["2.00"] * 3 and lines["chain"].endswith("1 of 2")
    assert lines["suffix"].split()[1:3] == ["4.00", "0.50"]
    assert lines["suffix"].endswith("2 of 2") and "1 differ otherwise" in shown


def test_the_library_is_asked_for_its_own_precision_by_rows_of_their_own():
    asked = []

    class Peer:
        def ask(self, **request):
            asked.append(request)
            return {"tokens": [5], "seconds": 1.0}

    for exact in (True, False):
        GenAiContestant("openvino lookup", Peer(), exact).write([1], 1)
    assert [request.pop("exact") for request in asked] == [True, False]
    assert asked[0] == asked[1] and asked[0]["way"] == "lookup"
    assert GenAiContestant("openvino", None, False).name == "openvino default"


def test_a_race_of_tiny_models_without_the_second_peer(
    quick, tiny_paths, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("DRAFTSCOPE_OPENVINO_PEER", str(tmp_path / "none"))
    monkeypatch.setenv("DRAFTSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(real_suite, "QUICK", Plan(1, 1, 6))
    cards = {kind: [{"id": kind, "prompt": "a b a b a"}] for kind in TURNS[:1]}
    report = real_suite.measure(tiny_paths, cards, True)
    assert json.loads(json.dumps(report.data))["kind"] == "bench"
    names = {row["contestant"] for row in report.data["rows"]}
    assert {"transformers", "assisted", "none", "chain", "chain of 4", "suffix"} <= names
    assert not any(name.startswith(("openvino", "eagle", "dflash")) for name in names)
    told = capsys.readouterr().err.splitlines()
    refused = [line for line in told if line.startswith("OpenVINO GenAI in ")]
    assert len(refused) == 2 and all("make openvino-peer" in line for line in refused)
    assert not (tmp_path / "cache" / "bench").exists(), "no draft is written for nobody"
    assert "eagle is left out: there is no part eagle" in told
    assert "make openvino-peer" in report.text
    assert [entry for entry in report.data["differences"] if not entry["numerics"]] == []


def test_a_precision_whose_process_ends_takes_no_other_with_it(tiny_paths, monkeypatch, capsys):
    """Some processors fail in one precision."""

    class Peer(Contestant):
        def __init__(self, name):
            self.name = name

        def write(self, prompt, count, counters=None):
            if self.name == "rounded":
                raise UserError("It has ended.")

    entered = lambda paths, exact, rounded=(): [Peer("exact" if exact else "rounded")]
    monkeypatch.setattr(real_suite, "environment", lambda: None)
    monkeypatch.setattr(real_suite, "genai_contestants", entered)
    present, missing = real_suite.openvino_contestants(tiny_paths, None)
    assert [each.name for each in present] == ["exact"] and missing == ""
    assert capsys.readouterr().err == (
        "OpenVINO GenAI in its own precision is left out: It has ended.\n"
    )


def test_a_draft_is_written_once_as_others_read_it(tiny_paths, tmp_path, monkeypatch):
    from transformers import AutoModelForCausalLM

    monkeypatch.setenv("DRAFTSCOPE_CACHE", str(tmp_path))
    draft = real_suite.whole_draft(tiny_paths)
    folder = real_suite.written(draft, tiny_paths)
    module = AutoModelForCausalLM.from_pretrained(folder)
    assert module.lm_head.weight.shape == draft.get_input_embeddings().weight.shape
    assert real_suite.written(None, tiny_paths) == folder
