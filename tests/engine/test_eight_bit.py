"""Parts whose matrices are stored in 8 bits: what is read again, what a trained part then drafts, wrong scales."""

from __future__ import annotations

import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.bench.peers import _module
from engine.errors import UserError
from engine.parts.drafts import drafts_among
from engine.parts.eight_bit import packed, unpacked
from engine.parts.files import halve, in_eight_bits, read_tensors, stored_tensors
from engine.parts.loading import ModelPaths
from engine.parts.opening import load_language_model
from engine.training.__main__ import main
from engine.training.teacher import _opened
from presets.listed import HERE as PRESETS

PARTS = PRESETS / "models" / "parts"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (64, 5)])
def test_a_number_moves_by_at_most_half_a_step_of_its_row(shape, dtype):
    torch.manual_seed(0)
    matrix = (torch.randn(shape) * torch.logspace(-4, 3, shape[0])[:, None]).to(dtype)
    again = unpacked(packed({"w": matrix}))["w"]
    step = matrix.float().abs().amax(1, keepdim=True) / 127
    assert ((again - matrix.float()).abs() <= 0.501 * step).all()
    assert again.dtype == torch.float32


def test_a_row_of_zeros_and_whatever_is_no_matrix_stay():
    tensors = {
        "zeros": torch.zeros(2, 3),
        "norm": torch.tensor([1.5, -2.25], dtype=torch.bfloat16),
        "d2t": torch.tensor([[1, 2], [3, 4]]),
    }
    stored = packed(tensors)
    assert stored["norm"] is tensors["norm"] and stored["d2t"] is tensors["d2t"]
    again = unpacked(stored)
    assert again.keys() == tensors.keys() and not again["zeros"].any()


def test_float8_is_read_with_one_factor_with_one_a_row_and_alone():
    numbers = torch.tensor([[1.0, -2.0], [0.5, 4.0]])
    eight = numbers.to(torch.float8_e4m3fn)
    for scale, factor in (
        (torch.tensor(2.0), 2.0),
        (torch.tensor([2.0, 4.0]), torch.tensor([[2.0], [4.0]])),
        (torch.tensor([[2.0], [4.0]]), torch.tensor([[2.0], [4.0]])),
    ):
        found = unpacked({"w": eight, "w_scale": scale})
        assert list(found) == ["w"] and found["w"].equal(numbers * factor)
    assert unpacked({"w": eight})["w"].equal(numbers)


def test_a_tensor_that_is_only_called_scale_is_kept():
    tensors = {"w": torch.ones(2, 2), "w_scale": torch.ones(2)}
    assert unpacked(tensors).keys() == tensors.keys()


@pytest.mark.parametrize(
    ("scale", "told"),
    [
        (None, "w is int8 and has no w_scale"),
        (torch.ones(3), "w_scale is no factor"),
        (torch.ones(2, dtype=torch.int8), "w_scale is no factor"),
    ],
)
def test_a_wrong_scale_is_refused_in_one_sentence(tmp_path, scale, told):
    tensors = {"w": torch.ones(2, 2, dtype=torch.int8)}
    tensors |= {} if scale is None else {"w_scale": scale}
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(UserError, match=told) as found:
        read_tensors(tmp_path, "part")
    assert str(found.value).endswith(".") and "\n" not in str(found.value)


def test_the_recipe_halves_a_part(tmp_path, capsys):
    shutil.copytree(PARTS / "kangaroo", tmp_path / "parts" / "own")
    file = tmp_path / "parts" / "own" / "model.safetensors"
    before = {name: each.bfloat16() for name, each in stored_tensors(file).items()}
    save_file(before, file)
    size = file.stat().st_size
    given = ["--models", str(tmp_path), "halve"]
    assert main(["--name", "own", *given]) == 0
    assert file.stat().st_size < 0.55 * size
    again = stored_tensors(file)
    assert again.keys() == before.keys()
    for name, tensor in before.items():
        near = again[name].float() - tensor.float()
        assert near.norm() <= 0.02 * tensor.float().norm(), name
    matrices = [name for name, each in before.items() if each.dim() == 2]
    assert matrices and all(load_file(file)[name].dtype == torch.int8 for name in matrices)
    for wrong, told in (
        ([], "needs the name"),
        (["--name", "none"], "no weights of a part in none"),
    ):
        assert main([*wrong, *given]) == 2
        assert told in capsys.readouterr().err


def test_a_draft_model_in_8_bits_drafts_nearly_as_before(tmp_path, uncompiled):
    draft = PRESETS / "models" / "draft"
    shutil.copytree(draft, tmp_path / "small")
    before, after = halve(tmp_path / "small")
    assert after < 0.55 * before and in_eight_bits(tmp_path / "small" / "model.safetensors")
    whole, small = (load_language_model(str(path)) for path in (draft, tmp_path / "small"))
    for opened in (_opened(tmp_path / "small"), _module(str(tmp_path / "small"))):
        assert opened.lm_head.weight.equal(small.model.lm_head.weight), (
            "recipes and peers unpack it"
        )
    assert small.parameters == whole.parameters and small.end_tokens == whole.end_tokens
    tokens = whole.tokenizer("Once upon a time, there was a little")["input_ids"]
    chain = range(-1, len(tokens) - 1)
    one, other = (model.session(64).feed(tokens, chain)[0].softmax(-1) for model in (whole, small))
    assert not one.equal(other)
    assert torch.minimum(one, other).sum(-1).min() > 0.95
    (found,) = drafts_among(ModelPaths("unread", {"draft": str(tmp_path / "small")})).values()
    assert found.parameters == whole.parameters


def test_a_language_model_with_a_wrong_scale_is_refused_in_one_sentence(tmp_path):
    shutil.copytree(PRESETS / "models" / "draft", tmp_path / "wrong")
    file = tmp_path / "wrong" / "model.safetensors"
    tensors = packed(load_file(file))
    del tensors["model.embed_tokens.weight_scale"]
    save_file(tensors, file, metadata={"format": "pt"})
    with pytest.raises(UserError, match="weight is int8 and has no .*weight_scale[.]$") as found:
        load_language_model(str(tmp_path / "wrong"))
    assert "\n" not in str(found.value)
