"""The GPU suites on a machine without a GPU: their arithmetic, and the message that there is none."""

import pytest
import torch

from engine.__main__ import main
from engine.bench.gpu import costs, drafts_suite
from engine.bench.gpu import parts as report
from engine.bench.gpu.costs import LLAMA_8B, QWEN3_4B, Ceilings, Cost, Shape
from engine.bench.gpu.gpu_goals import kernel_goals, step_goals
from engine.bench.gpu.gpu_suite import PLAIN, end_to_end, greedy_equality
from engine.bench.gpu.steps import binary_tree, step_times
from engine.bench.gpu.timing import Deadline
from engine.bench.suite import Plan
from engine.parts.loading import ModelPaths
from presets import family, prompts
from tests.soundness import assert_sound

H200 = Ceilings(bandwidth=4.3e12, rate=790e12)


def test_sizes_are_those_of_the_models():
    assert 7.4e9 < LLAMA_8B.step_parameters < 8.1e9
    assert 3.6e9 < QWEN3_4B.step_parameters < 4.1e9


def test_the_floor_is_the_larger_of_the_two():
    assert H200.floor(Cost(4.3e9, 0)) == pytest.approx(1.0)
    assert H200.floor(Cost(4.3e9, 790e10)) == pytest.approx(10.0)
    assert H200.bound(Cost(4.3e9, 0)) == "memory"
    assert H200.bound(Cost(0, 1)) == "matrix"


def test_attention_reads_the_cache_once():
    cost = costs.attention(LLAMA_8B, 8, 32768)
    cache = 2 * 8 * (32768 + 8) * 128 * 2
    assert cost.bytes == cache + 2 * 32 * 8 * 128 * 2
    assert cost.operations == 4 * 32 * 8 * (32768 + 8) * 128
    assert H200.bound(cost) == "memory"
    assert H200.bound(costs.attention(LLAMA_8B, 64, 32768)) == "matrix"


def test_a_step_is_its_weights_and_its_caches():
    one, many = costs.step(LLAMA_8B, 1, 2048), costs.step(LLAMA_8B, 65, 2048)
    assert one.bytes > 2 * LLAMA_8B.step_parameters
    assert 1 < H200.floor(many) / H200.floor(one) < 1.05


def test_small_costs():
    assert costs.commit(64, 8, 128, 6).bytes == 2 * 64 * 8 * 128 * 6 * 2
    assert costs.verify("greedy", 9, 1000).bytes == 4 * 9 * 1000
    assert costs.verify("rejection", 9, 1000, 5).bytes == 4 * 23 * 1000


def test_trees_have_their_size_and_two_children_a_node():
    tree = binary_tree(13, torch.ones(30) / 30)
    assert_sound(tree)
    assert len(tree) == 13
    assert max(tree.depths) == 3
    assert len(tree.children(-1)) == 2


def test_failures_and_lack_of_time_are_named():
    content = {"rows": [], "left_out": []}
    row = report.against_floor("copy", 2.0, Cost(4.3e9), H200)

    def half():
        yield row | {"name": "half"}
        raise ZeroDivisionError

    parts = [("good", lambda: [row], 0), ("bad", half, 0), ("late", lambda: [row], 1e9)]
    report.measure_all(parts, Deadline(60), content)
    assert [r["times_floor"] for r in content["rows"]] == [pytest.approx(2.0)] * 2
    assert [r["name"] for r in content["rows"]] == ["copy", "half"]
    assert [entry.split(":")[0] for entry in content["left_out"]] == ["bad", "late"]


TOY = Shape("Llama-8B-shaped", 2, 32, 4, 2, 16, 48, 100, False)


def test_steps_are_measured_at_toy_size():
    """What the suite runs on a CPU: passes on static buffers, and the host's part of the loop."""
    rows = list(step_times(TOY, H200, nodes=(8, 64), prefix=20))
    assert [row["name"].split(", ", 1)[1] for row in rows] == [
        "1 token", "8 nodes", "64 nodes", "8 nodes, judged", "host, 8 nodes", "4 texts, 8 nodes",
    ]  # fmt: skip
    assert rows[0]["times_one_token"] == 1
    assert rows[0]["captured"] is False
    assert 0 < rows[-2]["host_share"] <= 1
    assert rows[-2]["host_ms"] <= rows[-2]["step_ms"]
    goals = step_goals(rows)
    assert [goal.value is not None for goal in goals] == [True, True, True, False, False]


def test_a_trained_pair_is_raced_and_compared(uncompiled):
    texts, small = [card["prompt"] for card in prompts("story")[:2]], family().parts["draft"]
    pair = ModelPaths(small, {"draft": small})
    rows = end_to_end(pair, texts[:1], Deadline(600), "float32", tokens=6)
    rows += greedy_equality(pair, texts, Deadline(600), tokens=6)
    by_name = {row["name"]: row for row in rows}
    assert by_name[f"{PLAIN}, float32"]["times_plain"] == 1
    assert by_name["engine, none, float32"]["prompts"] == 1
    assert by_name["greedy output equal, float32"] == {
        "name": "greedy output equal, float32", "equal": 2, "prompts": 2, "margins": [],
    }  # fmt: skip
    assert all(goal.value for goal in step_goals(rows)[3:])


def test_drafts_of_every_size_are_raced_and_counted(monkeypatch):
    monkeypatch.setattr(drafts_suite, "LENGTHS", (2,))
    monkeypatch.setattr(drafts_suite, "NODES", (3,))
    every = family()
    paths = ModelPaths(every.target, {role: every.parts[role] for role in ("draft", "eagle")})
    texts = [card["prompt"] for card in prompts("story")[:3]]
    rows = list(drafts_suite.measured(paths, texts, Plan(2, 1, 6), 1, Deadline(600)))
    by_name = {row["name"]: row for row in rows}
    assert {"none", "chain 2", "chain 4", "dyspec 3", "eagle 3", drafts_suite.PLAIN} <= {*by_name}
    assert drafts_suite.ASSISTED in by_name and "dflash 2" not in by_name
    assert by_name[drafts_suite.PLAIN]["times_plain"] == 1 and by_name["none"]["times_none"] == 1
    assert by_name["none"]["tokens_per_step"] == 1
    assert [by_name[name]["texts"] for name in ("none", drafts_suite.PLAIN)] == [3, 2]
    assert all(row["tokens_per_step"] >= 1 and row["equal_texts"] <= 2 for row in rows)
    late = list(drafts_suite.measured(paths, texts, Plan(2, 1, 6), 1, Deadline(0)))
    assert {row.get("problem") for row in late} == {"no time was left"} and len(late) == len(rows)


def test_goals_are_read_off_the_rows():
    rows = [
        {"name": "attention, 9 rows, prefix 32768", "times_floor": 1.3, "sdpa_times_ours": 5.0,
         "flex_times_ours": 1.4},
        {"name": "attention, 65 rows, prefix 32768", "times_floor": 2.2, "sdpa_times_ours": 3.0},
    ]  # fmt: skip
    goals = kernel_goals(rows)
    assert [goal.met for goal in goals] == [True, False, True, None]
    slow = {"name": "Llama-8B-shaped, 64 nodes", "times_one_token": 1.3}
    raced = [
        {"name": "engine, chain, bfloat16", "times_assisted": 3.0},
        {"name": "engine, chain, float32", "times_assisted": 1.9},
    ]
    equal = {"name": "greedy output equal, float32", "equal": 49, "prompts": 50}
    assert [goal.met for goal in step_goals([slow, *raced, equal])] == [
        False, None, None, False, False,
    ]  # fmt: skip
    assert [goal.met for goal in step_goals([])] == [None] * 5
    none = {"name": "greedy output equal, float32", "equal": 0, "prompts": 0}  # no time was left
    assert step_goals([none])[-1].value is None


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("suite", ["kernels", "gpu", "drafts"])
def test_without_a_gpu_there_is_one_sentence_and_no_file(suite, tmp_path, capsys):
    out = tmp_path / "out.json"
    assert main(["bench", "--suite", suite, "--json", str(out)]) == 2
    said = capsys.readouterr().err.strip()
    assert said.count("\n") == 0
    assert "GPU" in said
    assert not out.exists()
