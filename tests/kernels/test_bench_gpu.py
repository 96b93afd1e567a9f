"""The GPU suites where there is no GPU: their arithmetic, and how they say that there is none."""

import json

import pytest
import torch

from engine.__main__ import main
from engine.bench_gpu import costs, report
from engine.bench_gpu.costs import LLAMA_8B, QWEN3_4B, Ceilings, Cost
from engine.bench_gpu.timing import Deadline
from engine.bench_gpu.trees import binary_tree

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
    assert costs.race(8, 1000).bytes == 16000
    assert costs.head(1, 10, 100, 4).operations == 2000
    assert costs.ngram(10, 2).bytes == 48


def test_trees_have_their_size_and_two_children_a_node():
    tree = binary_tree(13, torch.ones(30) / 30)
    tree.check()
    assert len(tree) == 13
    assert max(tree.depths) == 3
    assert len(tree.children(-1)) == 2


def test_failures_and_lack_of_time_are_named(tmp_path):
    content = {"rows": [], "left_out": []}
    row = report.against_floor("copy", 2.0, Cost(4.3e9), H200)
    parts = [
        ("good", lambda: [row], 0),
        ("bad", lambda: 1 / 0, 0),
        ("late", lambda: [row], 1e9),
    ]
    report.measure_all(parts, Deadline(60), content)
    assert [r["times_floor"] for r in content["rows"]] == [pytest.approx(2.0)]
    assert [entry.split(":")[0] for entry in content["left_out"]] == ["bad", "late"]
    path = tmp_path / "out.json"
    report.write(str(path), content)
    assert json.loads(path.read_text()) == content
    assert [file.name for file in tmp_path.iterdir()] == ["out.json"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("suite", ["kernels", "gpu"])
def test_without_a_gpu_there_is_one_sentence_and_no_file(suite, tmp_path, capsys):
    out = tmp_path / "out.json"
    assert main(["bench", "--suite", suite, "--json", str(out)]) == 2
    said = capsys.readouterr().err.strip()
    assert said.count("\n") == 0
    assert "GPU" in said
    assert not out.exists()
