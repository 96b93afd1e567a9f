"""A GGUF file becomes a folder that transformers and the engine open: the same numbers, tokens and template."""

import gguf
import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from engine.parts.gguf_llama import WEIGHTS, unpack
from tests.engine.tiny_gguf import (
    SPECIALS,
    TOKENS,
    stored_as,
    tensors_of,
    tiny_llama,
    write_gguf,
)

PROMPT = torch.tensor([[1, 40, 41, 90, 7, 100]])


@pytest.fixture
def opened(tmp_path):
    """Return opened(stored), which returns the folder made of the tiny model, stored in these types."""

    def make(stored=stored_as, **more):
        write_gguf(tmp_path / "m.gguf", tensors_of(tiny_llama()), stored, **more)
        folder = tmp_path / "model"
        folder.mkdir()
        unpack(tmp_path / "m.gguf", folder)
        return folder

    return make


@torch.no_grad()
def test_unpacked_numbers_give_the_models_own_logits(opened):
    made = AutoModelForCausalLM.from_pretrained(opened(lambda name: Kind.F32))
    assert torch.equal(made(PROMPT).logits, tiny_llama()(PROMPT).logits)
    assert made.config.tie_word_embeddings and made.config.rms_norm_eps == 1e-5


def test_packed_numbers_are_those_of_the_file(opened):
    folder, packed = opened(), tensors_of(tiny_llama())
    name = "blk.1.ffn_down.weight"
    expected = gguf.dequantize(gguf.quantize(packed[name], Kind.Q4_1), Kind.Q4_1)
    found = load_file(folder / WEIGHTS)
    assert torch.equal(
        found["model.layers.1.mlp.down_proj.weight"], torch.from_numpy(expected.copy())
    )
    assert all(each.dtype == torch.float32 for each in found.values()) and len(found) == 20


def test_the_file_is_as_safetensors_writes_it(opened, tmp_path):
    folder = opened()
    save_file(load_file(folder / WEIGHTS), tmp_path / "again", metadata={"format": "pt"})
    assert (folder / WEIGHTS).read_bytes() == (tmp_path / "again").read_bytes()


def test_the_tokenizer_splits_at_digits_and_merges_bytes(opened):
    tokenizer = AutoTokenizer.from_pretrained(opened())
    for text in ("the thin 12 in 2012", "日本 🌳\n\n  x", "naïve"):
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    told = [TOKENS[one] for one in tokenizer("the the tin")["input_ids"]]
    assert told == ["t", "he", "Ġthe", "Ġt", "in"], "merges in their order"
    twelve = tokenizer("12")["input_ids"]
    assert [TOKENS[one] for one in twelve] == ["1", "2"], "digits are not merged"
    assert tokenizer("".join(SPECIALS))["input_ids"] == [0, 1, 2]
    assert tokenizer.eos_token_id == 2 and tokenizer.all_special_ids == [1, 2, 0]
    said = [{"role": "user", "content": "the"}]
    text = tokenizer.apply_chat_template(said, tokenize=False, add_generation_prompt=True)
    assert text == "<|im_start|>user\nthe<|im_end|>\n<|im_start|>assistant\n"


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"architecture": "mamba"}, "no Llama"),
        ({"split": "other"}, "not known here"),
    ],
)
def test_another_kind_of_model_is_refused(opened, more, told):
    with pytest.raises(ValueError, match=told):
        opened(**more)


def test_a_tensor_that_no_llama_has_is_refused(tmp_path):
    tensors = tensors_of(tiny_llama())
    tensors["blk.0.odd.weight"] = tensors["output_norm.weight"]
    write_gguf(tmp_path / "m.gguf", tensors, lambda name: Kind.F32)
    with pytest.raises(ValueError, match=r"blk\.0\.odd\.weight"):
        unpack(tmp_path / "m.gguf", tmp_path)


def test_a_file_that_is_cut_off_is_refused(tmp_path):
    file = tmp_path / "m.gguf"
    write_gguf(file, tensors_of(tiny_llama()))
    whole = file.read_bytes()
    for length in (0, 100, 3000, len(whole) - 5000):
        file.write_bytes(whole[:length])
        with pytest.raises(ValueError):
            unpack(file, tmp_path)
