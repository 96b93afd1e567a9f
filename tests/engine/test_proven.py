"""Every architecture that is opened without a check passes the check in the way in which it is opened."""

import copy

import pytest
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from engine.fast.cpu.compiled_model import CompiledModel
from engine.model import self_check
from engine.model.own_attention import MaskedModel
from engine.model.proven import PROVEN, ROPES, proven_way
from engine.parts.opening import language_model
from tests.sweep.comparing import random_module
from tests.sweep.settings import VARIANTS
from tests.sweep.tiny_configs import config_of

ROPED = [name for name in VARIANTS if name.startswith(("llama, ", "phi3, "))]


def model_type_of(cls: str) -> str:
    """Return the model type whose configuration builds this class."""
    own = {"experts": "ExpertsForCausalLM", "captions": "CaptionsForCausalLM"}
    known = {**MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, **own}
    return next(
        kind
        for kind in sorted(known)
        if known[kind] == cls and kind not in ("gpt-sw3", "internlm3", "iquestcoder")
    )


@pytest.mark.parametrize("name", [*map(model_type_of, PROVEN), *ROPED])
def test_proven_architectures_read_as_their_modules(name):
    """Also on static buffers, as on a GPU."""
    module = random_module(config_of(name))
    way = proven_way(module)
    assert way is not None
    expected = self_check.readings(module)
    for static in (False, True):
        model = language_model(copy.deepcopy(module), None, name, lean=False, static=static)
        assert isinstance(model, MaskedModel) == (way == "masked")
        assert self_check.same_chains(model, expected)
        assert self_check.same_trees(model, expected)


@pytest.mark.parametrize("name", ["cohere2", "gpt_neox", "opt", "phi3"])
def test_compiled_passes_of_proven_architectures(name):
    """As they are opened on a CPU; other architectures are in ``test_compiled.py``."""
    module = random_module(config_of(name))
    expected = self_check.readings(module)
    model = language_model(module, None, name)
    assert isinstance(model, CompiledModel)
    assert self_check.same_chains(model, expected)
    assert self_check.same_trees(model, expected)


def test_every_kind_of_rope_is_among_them():
    kinds = {config_of(name).rope_parameters["rope_type"] for name in [*ROPED, "llama"]}
    assert kinds == ROPES
