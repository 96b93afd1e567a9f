"""What is asked of every kind of part: a tiny one, files that come back, and one sentence for all that is wrong with them."""

import json
import shutil
from functools import cache, partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.errors import UserError
from engine.finding import modules
from engine.methods import own_drafters
from engine.model.language_model import LanguageModel
from engine.parts.digest import FIELD
from engine.parts.kinds import kind_of, kinds
from engine.parts.module_part import ModulePart
from engine.parts.opening import language_model
from tests.engine.tiny import tiny_hf_model, tiny_model


def classes(base: type = ModulePart):
    """Key -> class, for every part that is a module."""
    kinds()
    found = {base.key: base} if hasattr(base, "key") else {}
    return found | {
        key: cls for below in base.__subclasses__() for key, cls in classes(below).items()
    }


@pytest.fixture(scope="module")
def target():
    return tiny_model("llama")


@pytest.fixture(scope="module")
def once_saved(target, tmp_path_factory):
    """Return a function that returns, for a key, a tiny part and its folder, which is made once."""

    @cache
    def one(key: str):
        torch.manual_seed(3)
        made, folder = classes()[key].tiny(target), tmp_path_factory.mktemp(key) / "part"
        made.save(folder, {FIELD: "0123"})
        return made, folder

    return one


@pytest.fixture
def saved(key, once_saved, tmp_path):
    """Return a tiny part, and a copy of its folder, which a test may spoil."""
    made, folder = once_saved(key)
    return made, Path(shutil.copytree(folder, tmp_path / "part"))


def load(key, folder, target):
    return classes()[key].open(str(folder), target, None, "cpu")


@pytest.mark.parametrize("key", kinds())
def test_every_kind_makes_a_tiny_one(key, target):
    torch.manual_seed(3)
    made = kind_of(key).tiny(target, partial(LanguageModel, tokenizer=None, name="part"))
    assert made is not None
    if isinstance(made, ModulePart):
        assert not made.training and not any(each.requires_grad for each in made.parameters())


@pytest.mark.parametrize("key", classes())
def test_files_come_back(key, target, saved):
    made, folder = saved
    again = load(key, folder, target)
    assert again.fields() == made.fields()
    weights = again.state_dict()
    assert weights.keys() == made.state_dict().keys()
    for name, weight in made.state_dict().items():
        assert torch.equal(weight.bfloat16().float(), weights[name]), name
    for one, other in zip(made.buffers(), again.buffers(), strict=True):
        assert torch.equal(one, other), "angles, which are in no file"
    assert json.loads((folder / "config.json").read_text())[FIELD] == "0123"
    assert not again.training and not any(each.requires_grad for each in again.parameters())


def refusal(key, folder, target) -> str:
    with pytest.raises(UserError) as told:
        load(key, folder, target)
    assert str(told.value).endswith(".") and "\n" not in str(told.value)
    return str(told.value)


@pytest.mark.parametrize("key", classes())
def test_wrong_files_are_one_sentence(key, target, saved, tmp_path):
    _, folder = saved
    tensors = load_file(folder / "model.safetensors")
    name = max(tensors)
    for changed in (
        {each: tensor for each, tensor in tensors.items() if each != name},
        {**tensors, "another": torch.zeros(3)},
        {**tensors, name: torch.zeros(3, 1, 2)},
        {},
    ):
        save_file(changed, folder / "model.safetensors")
        assert refusal(key, folder, target)
    (folder / "model.safetensors").write_bytes(b"\x00" * 50)
    assert "damaged" in refusal(key, folder, target)
    (folder / "model.safetensors").rename(folder / "model.bin")
    assert "pickled" in refusal(key, folder, target)
    assert classes()[key].noun in refusal(key, tmp_path / "nowhere", target)


@pytest.mark.parametrize("key", classes())
def test_a_config_that_is_none_is_one_sentence(key, target, saved):
    for config in ("[]", "{", "[" * 100_000, "\x00"):
        (saved[1] / "config.json").write_text(config)
        assert refusal(key, saved[1], target)


@pytest.mark.parametrize("key", [key for key, cls in classes().items() if cls.reads_states])
def test_a_target_of_other_sizes_is_one_sentence(key, target, saved):
    other = tiny_model("llama", hidden_size=16, num_attention_heads=2, num_key_value_heads=1)
    assert refusal(key, saved[1], other)


@pytest.mark.parametrize("key", [key for key, cls in classes().items() if cls.reads_states])
def test_it_computes_as_precisely_as_its_target(key, saved):
    half = load(
        key, saved[1], language_model(tiny_hf_model("llama").bfloat16(), None, "half", lean=False)
    )
    assert {weight.dtype for weight in half.parameters()} == {torch.bfloat16}
    whole = {name: each for name, each in saved[0].named_buffers()}
    for name, each in half.named_buffers():
        assert torch.equal(each, whole[name]), "angles stay as they are"


def test_no_drafter_needs_a_part_that_another_method_defines():
    """The folder of any method can be removed; a part of several methods is a shared one."""
    owners = {module.KIND.key: key for key, module in modules("part")}
    strangers = {
        (key, kind)
        for key, cls in own_drafters().items()
        for kind in cls.needs.values()
        if owners.get(kind, key) != key
    }
    assert not strangers
