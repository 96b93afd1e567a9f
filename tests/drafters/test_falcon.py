"""Falcon: blocks are drafted as they are trained, and true features replace drafted ones."""

import json

import pytest
import torch

from engine.core.sampling import Sampling
from engine.errors import UserError
from engine.methods.falcon.falcon_context import FalconContext
from engine.methods.falcon.falcon_training import through
from engine.methods.falcon.part import KIND, FalconCell, FalconConfig
from engine.methods.shared.eagle_config import tiny_config as eagle_config
from engine.parts.digest import FIELD
from engine.parts.loading import Models
from tests.drafters.writing import begun
from tests.engine.tiny import tiny_model

PROMPT = [3, 14, 15, 9, 2, 6, 5, 35, 8, 9, 7, 9]
GREEDY, COUNT = Sampling(), 12


@pytest.fixture(scope="module", params=[2, 3])
def models(request):
    """Return models whose blocks have two and three tokens."""
    target = tiny_model("llama")
    torch.manual_seed(6)
    cell = FalconCell(FalconConfig(request.param, eagle_config(target)))
    for weight in cell.parameters():
        weight.data *= 3
    return Models(target, {"falcon": cell.eval().requires_grad_(False)})


def run(models, count=COUNT, prompt=PROMPT, sampling=GREEDY, **options):
    return begun(models, "falcon", prompt, count, sampling, **{"nodes": 9, **options})


@torch.no_grad()
@pytest.mark.parametrize("steps", [(9,), (5, 1, 3), (1, 1, 7), (600, 2)])
def test_a_context_says_what_the_training_learns(models, steps):
    """The block after a text that is read in pieces, and the blocks after that block."""
    cell = models.part("falcon")
    size, width, count = cell.block_size, models.target.hidden_size, sum(steps)
    states, embedded = torch.randn(2, 1, count + 2 * size, width)
    context, begin = FalconContext(cell), 0
    for rows in steps:
        found = context.read(states[0, begin : begin + rows], embedded[0, begin : begin + rows])
        begin += rows
        assert (found is None) == (begin < size)
    offset = -count % size  # a block ends with the text
    expected = through(cell, states, embedded, offset)[0]
    torch.testing.assert_close(found, expected[count - size : count], atol=1e-4, rtol=1e-4)
    other = torch.randn(2, 1, size, width)  # a block beside the first one must not be seen
    both = torch.cat([torch.stack([states, embedded])[:, :, count : count + size], other], 1)
    seen = torch.tensor([[True, False], [False, True]])
    grown = context.grow(*both, [-1, -1], 0, seen)
    torch.testing.assert_close(grown[0], expected[count : count + size], atol=1e-4, rtol=1e-4)
    below = torch.tensor([[True, False, True]])
    last = torch.stack([states, embedded])[:, :, count + size :]
    deeper = context.grow(*last, [0], 1, below)[0]
    torch.testing.assert_close(deeper, expected[count + size :], atol=1e-4, rtol=1e-4)


def test_every_path_is_drafted_as_if_it_were_alone(models):
    """q of each node of a tree of three blocks, against drafting that node's path only."""
    step = next(run(models, 40, passes=3, top_k=3, nodes=40))
    tree, cell, target = step.tree, models.part("falcon"), models.target
    size = cell.block_size
    assert tree.deepest > 2 * size and step.passes["falcon"] == 3
    session = target.session(64, (target.layers,))
    features = session.prefill(PROMPT[:-1])
    embed = lambda tokens: target.embed(torch.tensor(tokens))
    for node in range(len(tree)):
        path = [tree.tokens[one] for one in tree.path(node)]
        context = FalconContext(cell)
        states = context.read(features, embed(PROMPT[1:]))
        for depth in range((len(path) - 1) // size):
            part = embed(path[depth * size : (depth + 1) * size])
            seen = torch.ones(1, depth + 1, dtype=torch.bool)
            states = context.grow(states[None], part[None], [depth - 1], depth, seen)[0]
        q = target.head(states)[(len(path) - 1) % size].softmax(-1)
        assert float(q[path[-1]]) == pytest.approx(tree.q[node], rel=1e-3)


@pytest.mark.parametrize("sampling", [GREEDY, Sampling(1.0, seed=5)], ids=["greedy", "drawn"])
def test_each_step_drafts_as_if_it_were_the_first(models, sampling):
    context, compared = list(PROMPT), 0
    for step in run(models, sampling=sampling):
        left = COUNT - len(context) + len(PROMPT)
        if left > 7:
            fresh = next(run(models, left, context, sampling))
            assert fresh.tree.tokens == step.tree.tokens
            assert fresh.tree.q == pytest.approx(step.tree.q, rel=1e-3)
            compared += 1
        context += step.output
    assert compared > 2


def test_a_text_shorter_than_a_block_is_not_drafted_for(models):
    steps = list(run(models, 10, [5]))
    size = models.part("falcon").block_size
    lengths = [len(step.tree) for step in steps[: size + 1]]
    assert lengths[:size] == [0] * size and lengths[size] > 0


@pytest.fixture
def saved(models, tmp_path):
    models.part("falcon").save(tmp_path / "cell", {FIELD: "0123"})
    return tmp_path / "cell"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"block_size": 1}, "no block drafter"),
        ({"hidden_size": "x"}, "no block drafter"),
        ({"rope_parameters": {"rope_type": "dynamic", "factor": 2.0}}, "dynamic"),
        ({"rope_parameters": {"rope_type": "wound"}}, "unknown kind 'wound'"),
        ({"rope_parameters": ["wound"]}, "no block drafter"),
    ],
)
def test_a_wrong_one_is_one_sentence(models, saved, changes, words):
    config = json.loads((saved / "config.json").read_text()) | changes
    (saved / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match=words) as told:
        KIND.load(str(saved), models.target, torch.float32, "cpu")
    assert str(told.value).endswith(".") and "\n" not in str(told.value)
