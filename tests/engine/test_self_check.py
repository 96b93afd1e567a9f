"""The check at opening: wrong readings are noticed, proven classes cost nothing, and results are remembered."""

import copy

import pytest
import torch
from transformers import MixtralConfig

from engine.errors import UserError
from engine.fast.cpu.compiled_model import CompiledModel, CompiledSession
from engine.model import admission, self_check
from engine.model.language_model import LanguageModel
from engine.model.own_attention import ChainModel
from engine.model.row_mask import RowMask
from engine.parts.opening import language_model
from tests.engine.tiny import WINDOW, tiny_hf_model
from tests.sweep.comparing import random_module
from tests.sweep.tiny_configs import config_of


@pytest.fixture(autouse=True)
def fresh_memory(monkeypatch, tmp_path):
    monkeypatch.setenv("DRAFTSCOPE_CACHE", str(tmp_path))


@pytest.fixture
def unproven(monkeypatch):
    """No class is proven."""
    monkeypatch.setattr("engine.model.proven.PROVEN", {})


@pytest.fixture
def no_check(monkeypatch):
    """Return a function; once it is called, every later check is an error."""

    def fail(module):
        raise AssertionError("a check was made")

    return lambda: monkeypatch.setattr(self_check, "readings", fail)


def test_what_is_proven_costs_nothing(no_check):
    no_check()
    for architecture in ("llama", "gemma2", "gpt2"):
        language_model(tiny_hf_model(architecture), None, architecture, lean=False)


def test_a_proven_class_with_an_unknown_rope_is_checked():
    module = tiny_hf_model("llama")
    module.config.rope_parameters = {"rope_type": "mystery"}
    assert admission.proven_way(module) is None


def test_what_was_found_out_is_kept(unproven, no_check):
    first = language_model(tiny_hf_model("gpt2"), None, "first", lean=False)
    no_check()
    second = language_model(tiny_hf_model("gpt2", seed=1), None, "second", lean=False)
    assert type(second) is type(first)
    refused = tiny_hf_model("gpt2", n_head=2)
    with pytest.raises(UserError, match="does not generate"):  # another configuration is checked
        language_model(refused, None, "third", lean=False)


def test_a_memory_that_cannot_be_read_is_made_anew(unproven, tmp_path):
    (tmp_path / "self_checks.json").write_text("no json")
    language_model(tiny_hf_model("gpt2"), None, "first", lean=False)
    assert "GPT2LMHeadModel" in (tmp_path / "self_checks.json").read_text()


def test_another_library_version_is_checked_again(unproven, no_check, monkeypatch):
    language_model(tiny_hf_model("gpt2"), None, "first", lean=False)
    monkeypatch.setattr(admission.transformers, "__version__", "6.0")
    no_check()
    with pytest.raises(UserError):
        language_model(tiny_hf_model("gpt2"), None, "second", lean=False)


def test_a_lost_window_is_noticed(unproven, monkeypatch):
    """Passes that see beyond the window differ from the module, so the module masks by itself."""
    monkeypatch.setattr(RowMask, "within", lambda mask, window: mask.visible)
    assert isinstance(language_model(tiny_hf_model("mistral"), None, "t", lean=False), ChainModel)


def test_counted_positions_are_noticed(unproven, monkeypatch):
    """Positions are right for a chain and wrong for a tree: chains still work, trees are refused with a sentence."""
    counted = property(lambda mask: mask._committed + torch.arange(len(mask._depths)))
    monkeypatch.setattr(RowMask, "row_positions", counted)
    model = language_model(tiny_hf_model("gpt2"), None, "counting", lean=False)
    assert isinstance(model, ChainModel)
    session = model.session(16)
    session.prefill([1, 2, 3])
    session.feed([4, 5, 6], [-1, 0, 1])
    session.commit([0, 1])
    with pytest.raises(UserError, match="reads chains only"):
        session.feed([7, 8, 9], [-1, 0, 0])


def test_a_forgotten_column_is_noticed(unproven, monkeypatch):
    """If no way of reading is right, the model is refused, whatever its module is."""
    whole = admission.LanguageModel.session

    def short(model, capacity, features=()):
        session = whole(model, capacity, features)
        prefill = session.prefill
        session.prefill = lambda tokens, layers=None: prefill(tokens[1:], layers)
        return session

    for name in (
        "engine.model.language_model.LanguageModel",
        "engine.fast.cpu.compiled_model.CompiledModel",
        "engine.fast.gpu.static_model.JoinedModel",
        "engine.model.own_attention.MaskedModel",
        "engine.model.own_attention.ChainModel",
    ):
        monkeypatch.setattr(f"{name}.session", short)
    with pytest.raises(UserError, match="gets other logits than GPT2LMHeadModel gives it"):
        language_model(tiny_hf_model("gpt2"), None, "short", lean=False)


def test_compiled_passes_that_are_wrong_are_not_used(unproven, monkeypatch):
    """The check uses the passes that were picked, not the module's own."""
    module = tiny_hf_model("gpt2")
    right = language_model(copy.deepcopy(module), None, "right")
    assert isinstance(right, CompiledModel)
    read = CompiledSession._forward

    def shifted(session, given, mask, features, last):
        logits, states = read(session, given, mask, features, last)
        return (logits if logits is None or len(logits) == 1 else logits.roll(1, 0)), states

    monkeypatch.setattr(CompiledSession, "_forward", shifted)
    found = language_model(tiny_hf_model("gpt2", seed=1, n_positions=96), None, "wrong")
    assert type(found) is LanguageModel


REFUSED = {
    "bert": r"bert does not read from left to right \(is_decoder",
    "mamba": "recurrent state",
    "jamba": "recurrent state",
    "openai-gpt": "keeps no keys and values",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_model_that_cannot_be_read_is_refused_with_that_reason(name):
    with pytest.raises(UserError, match=REFUSED[name]):
        language_model(random_module(config_of(name)), None, name, lean=False)


def test_lengths_are_tried_on_both_sides():
    prefixes = list(self_check._prefixes(tiny_hf_model("mistral")))
    read = [range(prefix, prefix + len(self_check._PARENTS)) for prefix in prefixes]
    assert any(WINDOW in tree for tree in read)
    assert any(tree[0] > WINDOW for tree in read)


def test_a_length_that_was_not_tried_bounds_the_context(unproven):
    config = config_of("mixtral")
    assert isinstance(config, MixtralConfig)
    config.sliding_window = 2 * self_check.LONGEST
    config.max_position_embeddings = 4 * self_check.LONGEST
    model = language_model(random_module(config), None, "mixtral", lean=False)
    assert model.max_context == config.sliding_window


def test_the_check_leaves_the_module_as_it_generates(unproven):
    """The checkpoint's settings for generate are restored after the check."""
    module = tiny_hf_model("gpt2")
    module.generation_config.repetition_penalty = 1.5
    language_model(module, None, "t", lean=False)
    assert module.generation_config.repetition_penalty == 1.5
