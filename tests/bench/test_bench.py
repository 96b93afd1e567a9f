"""The bench's arithmetic, and a race of tiny models from end to end."""

import json
from collections import Counter

import pytest
import torch

from engine.bench import peers_suite
from engine.bench.agreement import differences, first_difference
from engine.bench.bench_figures import best_of, profiles, rows
from engine.bench.contestants import Contestant, Ours, Writing
from engine.bench.goals import Aim, aims, goal_table, goals, goals_beside_openvino
from engine.bench.openvino import openvino_suite
from engine.bench.openvino.openvino_peers import GenAi
from engine.bench.peers import peer_contestants
from engine.bench.report import Report, figures
from engine.bench.report import table as shown
from engine.bench.suite import Plan, Prompt, Result, Suite, alike, sums
from engine.bench.suites import run_suite
from engine.cli.flags import SUITE_NAMES
from engine.core.drafter import Drafter
from engine.errors import UserError
from engine.finding import suites
from engine.methods import drafter
from engine.parts.loading import ModelPaths
from tests.verifiers.tiny import tiny_models

STORY, EDIT = Prompt("story", "story-01", [1, 2]), Prompt("edit", "edit-01", [3])
GROUPS = {"transformers": "plain", "assisted": "assisted", "none": "ours", "chain": "ours"}
SECONDS = {"transformers": 4.0, "assisted": 5.0, "none": 2.0, "chain": 1.0}


def result(name, prompt, number=0, seconds=None, tokens=8, calls=8):
    seconds = SECONDS[name] if seconds is None else seconds
    return Result(name, prompt, number, Writing(list(range(tokens)), seconds, calls))


def table(groups=GROUPS):
    found = []
    for name in groups:
        calls = 4 if name == "chain" else 8
        found += [result(name, prompt, calls=calls) for prompt in (STORY, EDIT)]
    return rows(found, groups)


def row_of(contestant, workload, speed):
    """A row with this many tokens per second."""
    prompt = Prompt(workload, workload, [1])
    (row,) = rows([result(contestant, prompt, seconds=8 / speed)], {contestant: "ours"})
    return row


def test_a_search_goes_on_from_text_to_text_and_memories_of_texts_do_not(monkeypatch):
    found, begin = [], Drafter.begin
    monkeypatch.setattr(
        Drafter, "begin", lambda own, start: (found.append(start.memory), begin(own, start))[1]
    )
    models = tiny_models(8)
    for key in ("swift", "suffix", "token_recycling"):
        contestant = Ours(drafter(key), models)
        for _ in range(2):
            contestant.write([1, 2, 3, 1, 2], 4)
    swift, again, *others = found
    assert swift is again
    assert len({id(memory) for memory in others}) == 4 and swift not in others


def test_rows_hold_medians_and_ratios():
    story = {row.contestant: row for row in table() if row.workload == "story"}
    assert story["transformers"].tokens_per_second == 2
    assert (story["none"].to_plain, story["none"].to_none) == (2, 1)
    assert (story["chain"].to_plain, story["chain"].to_none) == (4, 2)
    assert (story["chain"].mean_accepted, story["chain"].calls) == (2, 4)


def test_a_slow_round_does_not_count():
    found = [result("none", STORY, number, seconds) for number, seconds in enumerate((1, 1, 50))]
    (row,) = rows(found, {"none": "ours"})
    assert row.tokens_per_second == 8
    assert row.to_plain is None
    assert row.calls == 8


def test_the_best_of_a_workload():
    best = best_of(table(), ["none", "chain"])
    assert {workload: row.contestant for workload, row in best.items()} == {
        "story": "chain",
        "edit": "chain",
    }


def test_goals_take_what_was_measured_and_leave_out_the_rest():
    by_name = {goal.what: goal for goal in goals(table(), 1.7)}
    assert by_name["none / transformers"].value == pytest.approx(2)
    assert by_name["none / transformers"].met
    assert by_name["chain / best assisted"].value == pytest.approx(5)
    assert by_name["best drafter / none"].value == pytest.approx(2)
    assert by_name["8-node verify / one-token step"].met is False
    assert by_name["dyspec - chain, tokens a step, story"].met is None
    assert by_name["prompt_lookup / none, edit"].value is None


def test_goals_of_an_empty_race():
    assert {goal.met for goal in goals([], None)} == {None}


def test_first_difference():
    assert first_difference([1, 2], [1, 2]) is None
    assert first_difference([1, 3], [1, 2]) == 1
    assert first_difference([1], [1, 2]) == 1


@pytest.mark.parametrize(("lead", "numerics"), [(1e-5, True), (0.5, False)])
def test_only_a_near_tie_is_numerics(lead, numerics):
    right, wrong = Writing([5, 6, 7], 1, 3), Writing([5, 9, 7], 1, 3)
    found = [Result("transformers", STORY, 0, right), Result("none", STORY, 0, wrong)]
    asked = []

    def logits(tokens):
        asked.append(tokens)
        return torch.tensor([1.0, 1.0 + lead, 0.0])

    (difference,) = differences(found, "transformers", logits)
    assert asked == [[1, 2, 5]]
    assert (difference.contestant, difference.position) == ("none", 1)
    assert difference.numerics is numerics


def test_a_profile_accounts_for_every_millisecond():
    stages = {"prefill": 4.0, "draft": 6.0, "verify": 12.0, "judge": 1.0, "commit": 2.0}
    writing = Writing([1, 2, 3], seconds=0.030, calls=2, stages=stages)
    found = [Result("chain", STORY, number, writing) for number in (0, 1)]
    found.append(result("transformers", STORY))
    (profile,) = profiles(found)
    assert (profile["contestant"], profile["steps"], profile["prefill"]) == ("chain", 4, 4.0)
    assert profile["stages"] == {"draft": 3.0, "verify": 6.0, "judge": 0.5, "commit": 1.0}
    assert profile["rest"] == pytest.approx(2.5)


class Scribe(Contestant):
    group = "ours"

    def __init__(self, name: str, log: list) -> None:
        self.name, self.log = name, log

    def write(self, prompt, count, counters):
        self.log.append(self.name)
        return Writing([0] * count, 1.0, count, counts={name: count for name in counters})


def test_contestants_take_turns_and_each_warms_up_with_the_text_it_writes():
    log = []
    scribes = [Scribe(name, log) for name in "abc"]
    plan = Plan(prompts=3, rounds=1, tokens=4)
    results = Suite(scribes, [STORY, EDIT, STORY], plan, warm_up="text").run()
    warm, timed = log[::2], log[1::2]
    assert warm == timed == ["a", "b", "c", "b", "c", "a", "c", "a", "b"]
    told = [(result.prompt.workload, result.contestant) for result in results]
    assert told == [("story", name) for name in "aabbcc"] + [("edit", name) for name in "abc"]


@pytest.mark.parametrize(("warm_up", "times"), [("never", 2), ("once", 3)])
def test_counts_are_summed_by_workload_and_contestant(warm_up, times):
    log, longer = [], Prompt("edit", "edit-02", [4], count=7)
    plan, counters = Plan(prompts=1, rounds=1, tokens=4), {"seen": len}
    suite = Suite([Scribe("a", log)], [EDIT, longer], plan, counters, warm_up)
    results = suite.run()
    assert len(log) == times
    found = {"seen": 11, "texts": 2, "tokens": 11, "seconds": 2.0, "calls": 11}
    assert sums(results) == {("edit", "a"): Counter(found)}
    assert alike(results, "a") == {"a": 2}
    assert figures(Counter(found), rate="tokens / seconds", none="tokens / passes", seen="seen") == {
        "rate": 5.5, "none": None, "seen": 11,
    }  # fmt: skip


def test_a_table_shows_texts_left_numbers_right_and_a_dash_for_nothing():
    rows = [{"who": "a", "speed_up": 1.25, "n": 1200}, {"who": "bcd", "speed_up": None, "n": 7}]
    assert shown(rows, "who speed_up:.1f count=n:,") == (
        "who  speed up  count\na         1.2  1,200\nbcd         -      7"
    )


def test_a_report_is_printed_and_written_whole(tmp_path, capsys):
    out = tmp_path / "out.json"
    Report("all of it", {"rows": [1]}, "look at it").deliver(str(out))
    told = capsys.readouterr()
    assert told.out == "all of it\n" and told.err == f"written to {out}; look at it\n"
    assert json.loads(out.read_text("utf-8")) == {"rows": [1]}
    with pytest.raises(ValueError, match="JSON"):
        Report("", float("nan")).deliver(str(out))
    assert [file.name for file in tmp_path.iterdir()] == ["out.json"]


def test_every_suite_is_found_and_the_command_line_offers_all_but_the_peer():
    assert set(SUITE_NAMES) == set(suites()) - {"openvino"}
    assert {"peers", "within", "gpu"} <= set(SUITE_NAMES)


def test_every_card_has_goals_that_can_be_read():
    known = {"peers", "openvino", "within", "retrieval"}
    found = [aim for suite in known for aim in aims(suite)]
    assert {aim.suite for aim in found} == known
    assert all(aim.goal([]).value is None for aim in found)


@pytest.mark.parametrize(
    ("kind", "value"), [("speed", 2.0), ("step", 2.0), ("longer", 1.0), ("faster", 2.0)]
)
def test_what_a_card_can_ask_for(kind, value):
    aim = Aim("chain", "peers", kind, over="" if kind == "step" else "none", least=1.5, aim=3.0)
    goal = aim.goal(table())
    assert goal.value == pytest.approx(value) and goal.met == (value >= 1.5)
    assert aim.goal(table(), {"chain": "It is not here."}).reason == "It is not here."
    assert ("met" in goal_table([goal]).splitlines()[1]) and f"{value:.2f}" in goal_table([goal])


def test_a_race_of_tiny_models(quick, tiny_paths):
    plan = Plan(prompts=1, rounds=1, tokens=6)
    workloads = {
        "edit": [{"id": "e", "prompt": "a b a b a"}],
        "story": [{"id": "s", "prompt": "c"}],
    }
    others = peer_contestants(tiny_paths, [("constant", 2)])
    judge = lambda race: goals(race.table, race.costs[8] / race.costs[0])
    report = peers_suite.beside(tiny_paths, workloads, plan, others, others[0], judge)
    printed, data = report.text, report.data
    assert [entry for entry in data["differences"] if not entry["numerics"]] == []
    names = [row["contestant"] for row in data["rows"] if row["workload"] == "edit"]
    peers = ["transformers", "transformers lookup", "assisted", "assisted constant 2"]
    assert names[: len(peers)] == peers
    ours = names[len(peers) :]
    assert {"none", "chain", "dyspec", "prompt_lookup"} <= set(ours)
    assert "dflash" not in ours  # these models include no denoiser
    assert all(name in printed for name in names)
    assert {row["calls"] for row in data["rows"] if row["contestant"] == "none"} == {6}
    assert len(data["goals"]) == 8
    spent = {entry["contestant"]: entry for entry in data["profiles"]}
    assert list(spent) == ours
    assert all(ms >= 0 for entry in spent.values() for ms in entry["stages"].values())
    assert {"draft", "verify", "judge", "commit"} <= spent["none"]["stages"].keys()


def test_a_place_that_cannot_be_written_is_named_first(tmp_path):
    with pytest.raises(UserError, match="nowhere"):
        run_suite("peers", ModelPaths(""), {}, True, str(tmp_path / "no" / "nowhere.json"))


def test_goals_beside_openvino():
    groups = {
        "openvino": "plain",
        "openvino lookup": "lookup",
        "openvino draft 3": "assisted",
        "none": "ours",
        "chain": "ours",
        "prompt_lookup": "ours",
    }
    seconds = dict(zip(groups, (4.0, 2.0, 3.0, 5.0, 1.0, 1.5), strict=True))
    found = [
        result(name, prompt, seconds=seconds[name]) for name in groups for prompt in (STORY, EDIT)
    ]
    aims = goals_beside_openvino(rows(found, groups), 1.4, {"none": 2.5, "chain": 3.5})
    by_name = {goal.what: goal for goal in aims}
    assert by_name["none / openvino"].value == pytest.approx(4 / 5)
    assert by_name["best drafter / openvino's best speculation"].value == pytest.approx(2)
    assert by_name["prompt_lookup / openvino lookup, edit"].value == pytest.approx(2 / 1.5)
    assert by_name["one-row pass / reading the weights"].met
    assert by_name["step beside two busy processes, none"].met
    assert not by_name["step beside two busy processes, chain"].met
    without = goals_beside_openvino([], None, {})
    assert {goal.met for goal in without} == {None}


def test_a_peer_that_was_not_installed_is_one_sentence(tiny_paths, tmp_path, monkeypatch):
    monkeypatch.setenv("DRAFTSCOPE_OPENVINO_PEER", str(tmp_path))
    with pytest.raises(UserError, match="make openvino-peer"):
        openvino_suite.measure(tiny_paths, {"story": []}, True)


def test_a_peer_that_ends_is_one_sentence(tmp_path, monkeypatch):
    """The peer's Python has no OpenVINO GenAI."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to("/bin/false")
    monkeypatch.setenv("DRAFTSCOPE_OPENVINO_PEER", str(tmp_path))
    peer = GenAi(tmp_path, None)
    with pytest.raises(UserError, match="has ended"):
        peer.ask(way="plain", exact=True, tokens=[1], count=1, settings={})
