"""GTO: trees as the drafter grows them, their reward worked out by hand, and a loss that follows the reward. FSPAD: a
cell that begins as EAGLE's. The recipes of both report the accepted length before and after."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
import torch
from transformers import LlamaForCausalLM

from engine.core.chance import DraftChance
from engine.core.drafter import Start
from engine.core.sampling import Sampling
from engine.core.tree import ROOT
from engine.errors import UserError
from engine.methods.eagle.part import KIND
from engine.methods.gto import tree_reward_training as tree_reward
from engine.methods.gto.tree_reward_training import GrownTree, Lender, Policy
from engine.methods.shared.eagle_layout import read_cell, write_cell
from engine.parts.loading import Models
from engine.parts.opening import language_model
from engine.training.__main__ import main
from engine.training.cell_training import new_cell
from engine.training.students.cell_student import AFTER, BEFORE
from tests.drafters.writing import usual
from tests.training.lessons import begun, learn_own_text, lesson, opened, own_text, student_of

pytestmark = pytest.mark.exhaustive

POLICY = Policy(nodes=6, depth=3, top_k=3)


def cell_of(layout="eagle"):
    made, cell = begun(layout=layout)
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in cell.parameters():
            weight += 0.1 * weight.std() * torch.randn_like(weight)
    return made, cell.eval()


def gto(target, cell, **settings):
    cell = cell.eval().requires_grad_(False)
    return student_of("gto", target, cell, nodes=6, depth=3, **settings)


@pytest.mark.parametrize("layout", ["eagle", "eagle3"])
def test_trees_are_grown_as_the_drafter_grows_them(target, layout):
    made, cell = cell_of(layout)
    tokens = own_text()[0].tolist()
    given = lesson(made, own_text()[:1])
    roots = [1, 4, 5, 9]
    found = tree_reward.grown(cell, Lender.of(target), given.features[0], tokens, roots, POLICY)
    model = opened(target)
    options = {"nodes": 6, "depth": 3, "top_k": 3, "stop_below": 0.0}
    for root, tree in zip(roots, found, strict=True):
        drafter = usual("eagle", Models(model, {"eagle": cell}), **options)
        features = given.features[0, :root]
        drafter.begin(Start(tokens[: root + 1], Sampling(), DraftChance(0), features))
        wanted = drafter.propose(tokens[: root + 1], 8)
        assert (tree.tokens, tree.parents) == (wanted.tokens, wanted.parents)
        assert tree.root == root and len(tree) == 6


def test_the_target_reads_all_trees_in_one_pass(target):
    tokens = own_text()[:2]
    trees = [
        [GrownTree(3, [5, 9, 7], [ROOT, 0, 0]), GrownTree(4, [8], [ROOT])],
        [GrownTree(6, [1, 2], [ROOT, ROOT])],
    ]
    laws = tree_reward.laws_of(target, tokens, trees)
    for row, some, found in zip(tokens.tolist(), trees, laws, strict=True):
        for tree, law in zip(some, found, strict=True):
            for node in range(len(tree)):
                path, at = [], node
                while at != ROOT:
                    path, at = [tree.tokens[at], *path], tree.parents[at]
                text = torch.tensor([[*row[: tree.root + 1], *path]])
                expected = target(input_ids=text).logits[0, -1].softmax(-1)
                torch.testing.assert_close(law[node], expected, rtol=1e-3, atol=1e-5)


def test_the_reward_is_the_expected_accepted_length_of_the_branches():
    """At the root p is .5 for 0 and .3 for 1; behind 0 it is .4 for 2. So the branches have .5 + .2 and .3 tokens."""
    tree = GrownTree(1, [0, 1, 2], [ROOT, ROOT, 0])
    behind = torch.tensor([0.5, 0.3, 0.1, 0.1])
    laws = torch.tensor([[0.3, 0.2, 0.4, 0.1], [0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    found = tree_reward.reward(tree, behind, laws, 1.0)
    assert found == pytest.approx(math.log(math.exp(0.7) + math.exp(0.3)))
    steep = tree_reward.reward(tree, behind, laws, 100.0)
    assert steep == pytest.approx(0.7, abs=1e-4), "nearly the best branch alone"
    assert tree_reward.longest_accepted(tree, behind, laws) == [0, 2]
    assert tree_reward.longest_accepted(tree, behind, laws[[1, 0, 2]]) == [0, 2]
    assert tree_reward.longest_accepted(tree, torch.tensor([0.0, 0.0, 0.0, 1.0]), laws) == []
    better = tree_reward.advantages(torch.tensor([[3.0, 2.0]]), torch.tensor([[1.0, 1.0]]))
    torch.testing.assert_close(better, torch.tensor([[1.0, -1.0]]))


def test_a_cell_that_has_not_moved_learns_nothing_of_its_trees(target):
    _, cell = cell_of()
    made = gto(target, cell)
    given = lesson(made, own_text()[:4])
    assert made.tree_loss(made.start(), given).item() == 0


def test_what_is_accepted_of_better_trees_becomes_likelier(target):
    _, cell = cell_of()
    made = gto(target, cell, group=4)
    part = made.start()
    with torch.no_grad():
        for weight in part.parameters():
            weight += 0.3 * weight.std() * torch.randn_like(weight)
    given = lesson(made, own_text()[:6])
    roots = made._roots(given)
    assert roots.shape == (6, 4) and (roots.diff(dim=-1) == 1).all() and roots.min() >= 1
    rewards, paths = made._judged(part, given, roots)
    weight = tree_reward.advantages(*rewards).flatten()
    # the loss learns only from accepted tokens, and only where the tree was better or worse than the first cell's
    chosen = [at for at, path in enumerate(paths) if path and abs(weight[at]) > 0.5]
    assert len(chosen) > 2
    steps = max(map(len, paths))

    def gain():
        said = made._likelihood(part, given, roots, paths, steps)
        return (said * weight)[chosen].sum().item()

    before = gain()
    optimizer = torch.optim.SGD(part.parameters(), 0.01)
    loss = made.tree_loss(part, given)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    assert gain() > before
    nobody = replace(given, counted=torch.zeros_like(given.counted))
    assert made.tree_loss(part, nobody).item() == 0


def test_likelihoods_are_those_of_a_draft(target):
    """The likelihoods of a path's tokens, computed with one step of the drafter's reader after the other."""
    _, cell = cell_of()
    made = gto(target, cell)
    given = lesson(made, own_text()[:1])
    roots, paths = torch.tensor([[4, 5]]), [[7, 9, 3], []]
    found = made._likelihood(cell, given, roots, paths, 3)
    tokens = own_text()[0].tolist()
    reader = tree_reward.EagleReader(cell, Lender.of(target), Sampling())
    reader.learn(given.features[0, :4])
    level, total = reader.catch_up(tokens[:5]), 0.0
    for depth, token in enumerate(paths[0]):
        total += float(level.q[0, token].log())
        level = reader.grow(level.states, [token], depth, None, [()])
    assert found.tolist() == pytest.approx([total / 3, 0.0], rel=1e-3)


def test_fspad_begins_as_eagle_and_its_two_modules_work(target, tmp_path):
    made, cell = begun("fspad")
    torch.manual_seed(0)
    plain = new_cell(replace(cell.config, sampling_size=0), target)
    plain.load_state_dict(cell.state_dict(), strict=False)
    given = lesson(made, own_text()[:4])
    expected = begun()[0].loss(plain, given).item()
    assert made.loss(cell, given).item() == pytest.approx(expected, rel=1e-4)
    learn_own_text(made, cell, 60, 3e-3, 48, 12)
    silent = [cell.readout.weight, cell.feature_sampler.down_proj.weight]
    assert all(weight.abs().max() > 0.01 for weight in silent)
    made.save(cell, tmp_path / "cell", {})
    again = read_cell(tmp_path / "cell", torch.float32, "cpu")
    model = opened(target)
    states, embedded = torch.randn(2, 3, cell.config.hidden_size)
    said = []
    for part in (cell.eval(), again):
        kept = part(states, embedded, part.turn(torch.arange(3)), lambda layer, q, k, v: q)
        said.append(part.logits(kept, target.get_output_embeddings()))
    torch.testing.assert_close(*said, rtol=0.1, atol=0.1)
    assert KIND.load(str(tmp_path / "cell"), model, None, "cpu").readout is not None


def test_fspad_can_begin_with_the_weights_of_a_trained_cell(target):
    eagle, trained = cell_of()
    made = student_of("fspad", target, trained, begun=True)
    given = lesson(made, own_text()[:2])
    wanted = eagle.loss(trained, given).item()
    assert made.loss(made.start(), given).item() == pytest.approx(wanted, rel=1e-4)
    with pytest.raises(UserError, match="run the recipe `eagle` first"):
        student_of("fspad", target, begun=True)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"feature_sampling_size": 0}, "it has feature_sampler"),
        ({"feature_sampling_size": 7}, "feature_sampler.gate_proj.weight of cell has the shape"),
        ({"feature_sampling_size": "wide"}, "feature_sampling_size is 'wide'"),
        ({"feature_sampling_size": -1}, "feature_sampling_size is -1"),
    ],
)
def test_a_wrong_sampler_is_refused(tmp_path, changed, told):
    write_cell(begun("fspad")[1], tmp_path / "cell", changed)
    with pytest.raises(UserError, match=told) as found:
        read_cell(tmp_path / "cell", torch.float32, "cpu")
    assert "\n" not in str(found.value) and str(found.value).endswith(".")


def test_the_recipes_tell_before_and_after(ready, capsys):
    path, given = ready
    short = ["--rows", "2", "--length", "32", "--tokens", "1024"]
    small = ["--option", "nodes=4", "--option", "depth=2", "--option", "group=2"]
    capsys.readouterr()
    assert main(["gto", *short, *small, *given]) == 2
    assert "run the recipe `eagle` first" in capsys.readouterr().err
    assert main(["eagle", *short, *given]) == 0
    parts = path / "models" / "parts"
    first = json.loads((path / "run" / "part-eagle.json").read_text())["looks"][-1]["accepted"]
    assert BEFORE not in json.loads((parts / "eagle" / "config.json").read_text())
    again = ["--start", str(parts / "eagle"), "--name", "longer"]
    for recipe in (["gto", *small], ["fspad"], ["eagle", *again]):
        assert main([*recipe, *short, *given]) == 0
        name = "longer" if recipe[0] == "eagle" else recipe[0]
        looks = json.loads((path / "run" / f"part-{name}.json").read_text())["looks"]
        config = json.loads((parts / name / "config.json").read_text())
        assert config[BEFORE] == pytest.approx(first, abs=0.1), "the cell as it was stored"
        assert config[AFTER] == pytest.approx(looks[-1]["accepted"], abs=1e-3)
    module = LlamaForCausalLM.from_pretrained(path / "models" / "target")
    model = language_model(module, None, "target", lean=False)
    for name in ("gto", "fspad"):
        cell = KIND.load(str(parts / name), model, None, "cpu")
        usual("eagle", Models(model, {"eagle": cell}))
