"""The nested draft: what each exit predicts, that rows left behind catch up, which exit is taken, and refused files."""

import copy
import json

import pytest
import torch
from transformers import LlamaForCausalLM

from engine.core.sampling import Sampling
from engine.errors import UserError
from engine.methods.s2d.drafter import NestedReader
from engine.methods.s2d.part import EXITS, NestedDraft
from engine.parts.kinds import kind_of
from engine.parts.loading import Models
from engine.parts.opening import language_model
from engine.training.checkpoint import export_model
from engine.training.new_models import draft_config
from engine.training.tokenizer import train_tokenizer
from tests.drafters.writing import steps_of, text_of
from tests.engine.tiny import VOCABULARY, tiny_hf_model, tiny_model
from tests.training.conftest import SMALL

PROMPT, TOKENS = [3, 5, 7, 3, 5], [9, 2, 40, 6]
EXIT_LAYERS = (1, 2, 3)


@pytest.fixture(scope="module")
def module():
    return tiny_hf_model(seed=3).requires_grad_(False)


def opened(module, lean):
    return language_model(copy.deepcopy(module), None, "nested", lean=lean)


def law_of(module, tokens, layers):
    """Return q after a text, by plain transformers with only the first layers."""
    states = module(torch.tensor([tokens]), output_hidden_states=True).hidden_states[layers]
    normed = states if layers == 3 else module.model.norm(states)
    return module.lm_head(normed)[0, -1].softmax(-1)


def close(found, truth):
    torch.testing.assert_close(found, truth, atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize("lean", [False, True])
@pytest.mark.parametrize("depths", [(1, 1, 3, 2), (2, 1, 2, 3), (3, 3, 1, 1)])
def test_every_exit_has_read_the_whole_text(module, depths, lean):
    """However deep the earlier tokens went."""
    model = opened(module, lean)
    model.prepare_stretches(EXIT_LAYERS[:-1], 1)
    reader = NestedReader(model, VOCABULARY, Sampling(1.0))
    reader.begin(EXIT_LAYERS)
    for context in (PROMPT, [*PROMPT, *TOKENS[:1]]):  # the second time after dropped rows
        close(reader.read(context), law_of(module, context, 3))
        text = list(context)
        for node, (token, depth) in enumerate(zip(TOKENS, depths, strict=True)):
            text.append(token)
            close(reader.shallow(node, token, node - 1), law_of(module, text, 1))
            while reader.depth < depth:
                close(reader.deeper(), law_of(module, text, reader.depth))
        reader.keep([0])


@pytest.mark.parametrize(("confidence", "exits"), [(0.0, {1}), (1.0, {3}), (0.5, {1, 2, 3})])
def test_a_token_comes_from_the_first_exit_that_is_sure_enough(module, confidence, exits):
    found = Models(tiny_model(), {"s2d": NestedDraft(opened(module, False), EXIT_LAYERS)})
    options = {"confidence": confidence, "length": 4, "stop_below": 0.0}
    steps = steps_of(found, "s2d", PROMPT, 40, **options)
    assert text_of(steps) == text_of(steps_of(found, "none", PROMPT, 40))
    taken = set()
    for step in steps:
        rows = step.tree.exhibits[0].to_dict(str)["rows"] if len(step.tree) else []
        assert len(rows) == len(step.tree)
        for row in rows[1:]:
            seen = [one for one in row[1:] if one is not None]
            taken.add(len(seen))
            assert all(one < confidence for one in seen[:-1])
            assert seen[-1] >= confidence or len(seen) == 3
    assert taken <= exits and len(taken) == min(len(exits), max(1, len(taken)))


def test_files_without_exits_are_refused(tmp_path, module):
    tokenizer = train_tokenizer(["a few words " * 20], 270)
    config = draft_config(len(tokenizer), tokenizer.eos_token_id, 2, **SMALL)
    export_model(LlamaForCausalLM(config), tmp_path, tokenizer)
    target = opened(module, False)
    target.tokenizer = tokenizer
    file = tmp_path / "config.json"
    plain = json.loads(file.read_text())
    load = kind_of("nested_draft").load
    for exits, told in (
        (None, "names no exits"),
        ([2, 1], "names no exits"),
        ([1, 3], "not those of its layers"),
    ):
        file.write_text(json.dumps(plain | ({} if exits is None else {EXITS: exits})))
        with pytest.raises(UserError, match=told) as error:
            load(str(tmp_path), target, torch.float32, "cpu")
        assert str(error.value).endswith(".")
    file.write_text(json.dumps(plain | {EXITS: [1, 2]}))
    assert load(str(tmp_path), target, torch.float32, "cpu").exits == (1, 2)
