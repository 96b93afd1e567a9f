"""The bench's arithmetic, and a race of tiny models from end to end."""

import json

import pytest
import torch

from engine.bench import command
from engine.bench.agreement import differences, first_difference
from engine.bench.bench_figures import best_of, geometric_mean, rows
from engine.bench.contestants import Contestant, Ours, Writing
from engine.bench.goals import goals, goals_beside_openvino
from engine.bench.openvino.openvino_command import openvino
from engine.bench.openvino.openvino_peers import GenAi
from engine.bench.profile import profiles
from engine.bench.round_progress import Progress
from engine.bench.rounds import Prompt, Result, race
from engine.core.drafter import Drafter
from engine.errors import UserError
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


def test_geometric_mean():
    assert geometric_mean([1, 4]) == pytest.approx(2)
    assert geometric_mean([3]) == pytest.approx(3)


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
    assert by_name["dyspec - chain, accepted, story"].met is None
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
    assert (profile.contestant, profile.steps, profile.prefill) == ("chain", 4, 4.0)
    assert profile.stages == {"draft": 3.0, "verify": 6.0, "judge": 0.5, "commit": 1.0}
    assert profile.rest == pytest.approx(2.5)


class Scribe(Contestant):
    group = "ours"

    def __init__(self, name: str, log: list) -> None:
        self.name, self.log = name, log

    def write(self, prompt, count):
        self.log.append(self.name)
        return Writing([0] * count, 1.0, count)


def test_contestants_take_turns_and_each_warms_up_with_the_text_it_writes():
    log, ticks = [], []
    scribes = [Scribe(name, log) for name in "abc"]
    prompts = [STORY, EDIT, STORY]
    results = race(scribes, prompts, 1, 4, lambda: ticks.append(1))
    warm, timed = log[::2], log[1::2]
    assert warm == timed == ["a", "b", "c", "b", "c", "a", "c", "a", "b"]
    assert len(results) == len(ticks) == 9


def test_the_bar_says_how_much_is_left():
    bar = Progress(4)
    for _ in range(4):
        bar.tick()
    assert "4/4, 0:00 left" in bar.line()
    assert "0/3" in Progress(3).line()


def test_a_race_of_tiny_models(tiny_paths, tmp_path, capsys):
    plan = command.Plan(prompts=1, rounds=1, tokens=6, schedules=(("constant", 2),))
    out = tmp_path / "bench.json"
    workloads = {
        "edit": [{"id": "e", "prompt": "a b a b a"}],
        "story": [{"id": "s", "prompt": "c"}],
    }
    command.bench(tiny_paths, workloads, plan, str(out))
    printed = capsys.readouterr().out
    data = json.loads(out.read_text())
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
    assert spent["none"]["stages"]["verify"] > spent["none"]["stages"]["draft"]


def test_a_place_that_cannot_be_written_is_named_first(tmp_path):
    plan = command.Plan(1, 1, 1, ())
    with pytest.raises(UserError, match="nowhere"):
        command.bench(ModelPaths(""), {}, plan, str(tmp_path / "no" / "nowhere.json"))


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
        openvino(tiny_paths, {"story": []}, True, None)


def test_a_peer_that_ends_is_one_sentence(tmp_path, monkeypatch):
    """The peer's Python has no OpenVINO GenAI."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to("/bin/false")
    monkeypatch.setenv("DRAFTSCOPE_OPENVINO_PEER", str(tmp_path))
    peer = GenAi(tmp_path, None)
    with pytest.raises(UserError, match="has ended"):
        peer.ask(way="plain", tokens=[1], count=1, settings={})
