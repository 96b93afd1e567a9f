"""Hydra: checkpoints in the published layouts, and trees in which each head knows the tokens before its own."""

import copy
import json

import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from transformers import LlamaModel

from engine.core.sampling import Sampling
from engine.errors import UserError
from engine.methods.shared.head_ranks import FIELD, usual
from engine.parts.kinds import kind_of
from engine.parts.loading import Models
from tests.drafters.writing import parameters_made, steps_of, text_of
from tests.verifiers.tiny import shared_models

VOCABULARY, WIDTH, HEADS = 16, 16, 3


class ResBlock(nn.Module):
    """The block of the published checkpoints."""

    def __init__(self, conditions=0):
        super().__init__()
        self.linear = nn.Linear(WIDTH * (conditions + 1), WIDTH)
        wide = conditions > 0
        self.res_connection = nn.Linear(WIDTH * (conditions + 1), WIDTH) if wide else nn.Identity()

    def forward(self, x):
        return self.res_connection(x) + nn.functional.silu(self.linear(x))


class Published(nn.Module):
    """The heads of a Hydra model with two blocks each, under the names in its state_dict. prefix: whether they are the
    heads of Hydra++, whose dropout layers count in these names."""

    def __init__(self, target, prefix=False):
        super().__init__()
        torch.manual_seed(1)
        self.input_embed_fn = target.get_input_embeddings()
        dropout = [nn.Dropout(0.0)] if prefix else []
        self.hydra_mlp = nn.ModuleList(
            nn.Sequential(*dropout, ResBlock(head + 1), *dropout, ResBlock())
            for head in range(HEADS)
        )
        projections = [nn.Linear(WIDTH, VOCABULARY) for _ in range(HEADS)]
        if prefix:
            config = copy.deepcopy(target.config)
            config.num_hidden_layers, config._attn_implementation = 1, "sdpa"
            self.prefix_embeding_layer = LlamaModel(config)
            projections = [nn.Sequential(nn.Dropout(0.0), each) for each in projections]
        self.hydra_lm_head = nn.ModuleList(projections)
        self.eval().requires_grad_(False)

    def logits(self, features, tokens):
        """Return logits after the last token. features: [T, H] of the tokens that the target has read. tokens: the
        tokens after them; their number selects the head."""
        if hasattr(self, "prefix_embeding_layer"):
            features = self.prefix_embeding_layer(inputs_embeds=features[None]).last_hidden_state[0]
        head = len(tokens) - 1
        rows = torch.cat([features[-1], *self.input_embed_fn(torch.tensor(tokens))])
        return self.hydra_lm_head[head](self.hydra_mlp[head](rows))


def written(folder, tensors, config=None):
    folder.mkdir(exist_ok=True)
    copies = {key: each.contiguous().clone() for key, each in tensors.items()}
    save_file(copies, folder / "hydra_lm_head.safetensors")
    config = {"hydra_num_heads": 9, "hydra_head_arch": "mlp"} | (config or {})  # configs lie
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


@pytest.fixture(scope="module")
def target():
    return shared_models(VOCABULARY).target


def opened(folder, target):
    return kind_of("hydra_heads").load(folder, target, None, "cpu")


PREFIXED = {False: "hydra_mlp.2.0.res_connection.weight", True: "hydra_mlp.2.1.linear.weight"}


@pytest.mark.parametrize("prefix", [False, True], ids=["hydra", "hydra++"])
def test_a_published_checkpoint_says_what_it_said(tmp_path, target, prefix):
    reference = Published(target.model, prefix)
    names = reference.state_dict()
    assert {
        "input_embed_fn.weight",
        "hydra_lm_head.0.1.bias" if prefix else PREFIXED[False],
    } <= set(names)
    assert ("prefix_embeding_layer.layers.0.self_attn.q_proj.weight" in names) == prefix
    heads = opened(written(tmp_path, names), target)
    features = torch.randn(5, WIDTH)
    state = heads.states(features[None])[0, -1]
    for tokens in ([3], [3, 7], [3, 7, 2]):
        head = len(tokens) - 1
        hidden = heads.hidden(head, state, target.embed(torch.tensor(tokens)))
        torch.testing.assert_close(heads.lm_head[head](hidden), reference.logits(features, tokens))
    assert heads.accuracies == usual(HEADS)


@pytest.mark.parametrize("prefix", [False, True], ids=["hydra", "hydra++"])
def test_what_was_written_has_the_published_names(tmp_path, target, prefix):
    names = Published(target.model, prefix).state_dict()
    heads = opened(written(tmp_path / "a", names), target)
    heads.save(tmp_path / "b", {FIELD: [[0.5, 0.25]] * HEADS})
    again = opened(str(tmp_path / "b"), target)
    borrowed = {"input_embed_fn.weight", "prefix_embeding_layer.embed_tokens.weight"}
    assert set(again.names()) == set(names) - borrowed
    for one, other in zip(heads.parameters(), again.parameters(), strict=True):
        assert torch.equal(one.bfloat16().float(), other)


@pytest.mark.parametrize("prefix", [False, True], ids=["hydra", "hydra++"])
def test_a_block_that_is_in_the_file_once_runs_as_often_as_the_config_says(
    tmp_path, target, prefix
):
    reference = Published(target.model, prefix)
    names = reference.state_dict()
    heads = opened(written(tmp_path / "a", names, {"hydra_num_layers": 4}), target)
    state, tokens = torch.randn(WIDTH), [3, 7]
    rows = torch.cat([state, *reference.input_embed_fn(torch.tensor(tokens))])
    first, block = (each for each in reference.hydra_mlp[1] if isinstance(each, ResBlock))
    expected = block(block(block(first(rows))))
    found = heads.hidden(1, state, target.embed(torch.tensor(tokens)))
    torch.testing.assert_close(found, expected)
    heads.save(tmp_path / "b", {})
    assert len(opened(str(tmp_path / "b"), target).blocks[0]) == 4


@pytest.mark.parametrize("prefix", [False, True], ids=["hydra", "hydra++"])
def test_blocks_that_are_missing_are_not_made_up(tmp_path, target, prefix):
    names = Published(target.model, prefix).state_dict()
    third, second = (5, 3) if prefix else (2, 1)
    others = {
        name.replace(f".{second}.linear", f".{third}.linear"): each
        for name, each in names.items()
        if f".{second}.linear" in name and "hydra_mlp" in name
    }
    with pytest.raises(UserError, match="have 3 blocks, where its configuration promises 4"):
        opened(written(tmp_path, names | others, {"hydra_num_layers": 4}), target)


def test_a_wrong_prefix_is_refused_before_any_layer_is_made(tmp_path, target, monkeypatch):
    names = Published(target.model, True).state_dict()
    names["prefix_embeding_layer.norm.weight"] = torch.ones(WIDTH + 1)
    folder, made = written(tmp_path, names), parameters_made(monkeypatch)
    with pytest.raises(UserError, match="norm.weight has the shape"):
        opened(folder, target)
    assert {weight.device.type for weight in made} == {"meta"}


def test_states_of_an_earlier_layer_can_be_asked_for(tmp_path, target):
    names = Published(target.model).state_dict()
    assert opened(written(tmp_path, names, {"hidden_state_offset": 1}), target).offset == 1
    for bad in (3, -1, "one"):
        with pytest.raises(UserError, match="asks for layers"):
            opened(written(tmp_path, names, {"hidden_state_offset": bad}), target)


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(1.0, seed=3)], ids=["greedy", "drawn"])
@pytest.mark.parametrize("prefix", [False, True], ids=["hydra", "hydra++"])
@pytest.mark.parametrize("offset", [0, 1])
def test_trees_hold_what_each_head_says_behind_the_tokens_before(
    tmp_path, sampling, prefix, offset
):
    """Against whole passes of the target's own module and of the published heads."""
    models, prompt = shared_models(VOCABULARY), [3, 5, 7]
    reference = Published(models.target.model, prefix)
    folder = written(tmp_path, reference.state_dict(), {"hidden_state_offset": offset})
    found = Models(models.target, {"hydra": opened(folder, models.target)})
    module = copy.deepcopy(models.target.model)
    module.set_attn_implementation("sdpa")
    text, branched = list(prompt), 0
    for step in steps_of(found, "hydra", prompt, 20, sampling, budget=9):
        states = module(torch.tensor([text[:-1]]), output_hidden_states=True).hidden_states
        features = states[models.target.layers - offset][0].detach()
        for parent in range(-1, len(step.tree)):
            children = step.tree.children(parent)
            path = [text[-1], *(step.tree.tokens[node] for node in step.tree.path(parent))]
            if children:
                said = reference.logits(features, path).argsort(descending=True).tolist()
                assert [step.tree.tokens[node] for node in children] == said[: len(children)]
                assert step.tree.sources[children[0]] == f"head {len(path)}"
        branched += len(step.tree.children(-1)) > 1
        text += step.output
    if sampling.greedy:
        assert branched and text[3:] == text_of(steps_of(models, "none", prompt, 20))


def test_the_table_shows_what_was_said_along_the_kept_path(tmp_path):
    models = shared_models(VOCABULARY)
    folder = written(tmp_path, Published(models.target.model).state_dict())
    found = Models(models.target, {"hydra": opened(folder, models.target)})
    for step in steps_of(found, "hydra", [3, 5, 7], 24, budget=9):
        (table,) = step.tree.exhibits
        places = [-1, *step.verdict.accepted]
        asked = [place for place in places if step.tree.children(place)]
        assert len(table.rows) == len(asked)
        for depth, (place, row) in enumerate(zip(asked, table.rows, strict=True)):
            children = step.tree.children(place)
            first = [cell.id for cell in row[1:-2]]
            assert [step.tree.tokens[node] for node in children][:4] == first[: len(children)]
            assert row[-2].id == step.output[depth]
