"""Medusa: checkpoints in the published layout, and trees of the tokens that the heads predict."""

import copy
import json

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from engine.core.sampling import Sampling
from engine.core.tree import ROOT
from engine.errors import UserError
from engine.methods.shared.head_ranks import FIELD, usual
from engine.parts.kinds import kind_of
from engine.parts.loading import Models
from tests.drafters.writing import steps_of, with_heads
from tests.verifiers.tiny import shared_models

VOCABULARY, WIDTH = 16, 16


class ResBlock(nn.Module):
    """The block of the published checkpoints."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return x + nn.functional.silu(self.linear(x))


def published(heads=3, layers=2, vocabulary=VOCABULARY):
    """The heads of a Medusa model, under the names that its state_dict gives them."""
    torch.manual_seed(1)
    made = [
        nn.Sequential(
            *(ResBlock() for _ in range(layers)), nn.Linear(WIDTH, vocabulary, bias=False)
        )
        for _ in range(heads)
    ]
    return nn.ModuleList(made).requires_grad_(False)


def written(folder, tensors, config=None, name="medusa_lm_head.safetensors"):
    folder.mkdir(exist_ok=True)
    save_file({key: each.contiguous().clone() for key, each in tensors.items()}, folder / name)
    config = {"medusa_num_heads": 5, "medusa_num_layers": 1} | (config or {})  # configs lie
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


def opened(folder):
    return kind_of("medusa_heads").load(folder, shared_models(VOCABULARY).target, None, "cpu")


@pytest.mark.parametrize("prefix", ["", "medusa_head."])
def test_a_published_checkpoint_says_what_it_said(tmp_path, prefix):
    reference = published()
    names = reference.state_dict()
    assert {"0.0.linear.weight", "0.1.linear.bias", "2.2.weight"} <= set(names)
    heads = opened(written(tmp_path, {prefix + name: each for name, each in names.items()}))
    state = torch.randn(WIDTH)
    expected = torch.stack([head(state) for head in reference])
    torch.testing.assert_close(heads.project(heads(state)), expected)
    assert heads.accuracies == usual(3) and not heads.shares_head


def test_without_projections_the_targets_head_speaks(tmp_path):
    names = published().state_dict()
    shared = {name: each for name, each in names.items() if "linear" in name}
    heads = opened(written(tmp_path, shared, name="model.safetensors"))
    assert heads.shares_head and len(heads) == 3


def test_wrong_figures_are_one_sentence(tmp_path):
    names = published().state_dict()
    for bad in ([[0.5]] * 2, [[2.0]] * 3, "high", [[]] * 3, [["x"]] * 3):
        with pytest.raises(UserError, match="not a table of shares"):
            opened(written(tmp_path, names, {FIELD: bad}))
    good = opened(written(tmp_path, names, {FIELD: [[0.5, 0.25]] * 3}))
    assert good.accuracies == ((0.5, 0.25),) * 3


# ---- The tree -----------------------------------------------------------------------------------


def models_with(heads, accuracies):
    models = shared_models(VOCABULARY)
    heads.accuracies = accuracies
    return Models(models.target, {"medusa": heads})


SHARES = ((0.5, 0.4, 0.05), (0.6, 0.3), (0.9,))


@pytest.fixture
def models(tmp_path):
    return models_with(opened(written(tmp_path, published().state_dict())), SHARES)


@pytest.fixture
def last_state(models):
    """last_state(text): the state [H] after the final norm, by the module's own attention."""
    module = copy.deepcopy(models.target.model)
    module.set_attn_implementation("sdpa")

    def state(text):
        found = module(torch.tensor([text]), output_hidden_states=True)
        return found.hidden_states[-1][0, -1]

    return state


SAMPLINGS = {
    "greedy": Sampling(),
    "drawn": Sampling(1.0, seed=3),
    "cut": Sampling(1.0, top_k=1, top_p=0.9, seed=3),
}


@pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=SAMPLINGS)
def test_trees_hold_what_the_heads_say_of_the_last_state(models, last_state, sampling):
    """The last state is that of the token before the root. A head's second choice is drafted even where top-k cuts
    it from the head's law."""
    reference, prompt = published(), [3, 5, 7]
    text = list(prompt)
    for step in steps_of(models, "medusa", prompt, 24, sampling, budget=7):
        state = last_state(text[:-1])
        said = [head(state).argsort(descending=True).tolist() for head in reference]
        for node, token in enumerate(step.tree.tokens):
            depth = step.tree.depths[node]
            siblings = step.tree.children(step.tree.parents[node])
            assert token == said[depth - 1][siblings.index(node)]
            assert step.tree.sources[node] == f"head {depth}"
        text += step.output


def test_the_shape_is_that_of_the_accuracies(models):
    """Products: .5 .4 .05, below the first .3 .15, below the second .24 .12, third heads .27 .216 ..."""
    step = next(iter(steps_of(models, "medusa", [3, 5, 7], 24, budget=7)))
    ranks = []
    for node in range(len(step.tree)):
        path = step.tree.path(node)
        above = [ROOT, *path]
        ranks.append(
            tuple(step.tree.children(parent).index(one) for parent, one in zip(above, path))
        )
    expected = {(0,), (1,), (0, 0), (0, 0, 0), (1, 0), (1, 0, 0), (0, 1)}
    assert set(ranks) == expected


def test_after_forced_tokens_the_later_heads_speak(models):
    drafter = with_heads("medusa", models, budget=5)
    tree = drafter.propose([3, 5, 7, 9], 8)
    assert set(tree.sources) == {"head 2", "head 3"} and tree.deepest == 2
    assert len(drafter.propose([3, 5, 7, 9, 9, 9], 8)) == 0, "no head looks that far"


def test_the_table_says_which_head_was_right(models):
    for step in steps_of(models, "medusa", [3, 5, 7], 24, budget=7):
        if not len(step.tree):
            continue
        (table,) = step.tree.exhibits
        assert [row[0] for row in table.rows] == ["head 1", "head 2", "head 3"]
        for depth, row in enumerate(table.rows):
            written_token, rank = row[-2], row[-1]
            if depth >= len(step.output):
                assert written_token is None and rank is None
                continue
            assert written_token.id == step.output[depth]
            first = [cell.id for cell in row[1:-2] if cell is not None]
            assert (first.index(written_token.id) + 1 == rank) if rank <= 4 else rank > 4


def test_weights_that_do_not_fit_into_memory_are_not_read(tmp_path, monkeypatch):
    folder = written(tmp_path, published().state_dict())
    needed = 4 * sum(weight.numel() for weight in published().parameters())
    monkeypatch.setattr("engine.parts.files.free_bytes", lambda: needed)
    opened(folder)
    monkeypatch.setattr("engine.parts.files.free_bytes", lambda: needed - 1)
    with pytest.raises(UserError, match="GB of memory") as told:
        opened(folder)
    assert str(told.value).endswith(".") and "\n" not in str(told.value)
