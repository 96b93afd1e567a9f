"""What is whole is opened, measured, and named as people know it."""

import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, GPTJConfig, GPTNeoConfig, LlamaConfig, MixtralConfig

from engine.errors import UserError
from engine.parts import size_limits as admission
from engine.parts.hub import is_hub_name
from engine.parts.inspection import inspect
from engine.parts.opening import load_language_model
from engine.parts.size_limits import Allowed, admit
from tests.engine.checkpoints import drop, headless, index, rewrite
from tests.engine.tiny import CONFIGS, tiny_hf_model
from tests.pairs import SIZES, make, tokenizer


def saved(folder: Path, module) -> Path:
    module.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


MANY = {"num_local_experts": 4, "num_experts_per_tok": 2, "vocab_size": 61}
WHOLE = {
    **{name: lambda name=name: tiny_hf_model(name) for name in CONFIGS},
    "tied": lambda: tiny_hf_model("llama", tie_word_embeddings=True),
    "experts in many tensors": lambda: AutoModelForCausalLM.from_config(
        MixtralConfig(**{**SIZES, **MANY})
    ),
    "layers of two kinds": lambda: AutoModelForCausalLM.from_config(
        GPTNeoConfig(vocab_size=61, hidden_size=32, num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]])
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", WHOLE)
def test_what_transformers_saves_lacks_nothing(tmp_path, kind):
    module = WHOLE[kind]()
    found = inspect(saved(tmp_path / "m", module))
    assert found.architecture == type(module).__name__
    assert found.parameters == sum(one.numel() for one in module.parameters())


def test_a_tied_head_may_lie_under_either_name(tmp_path):
    config = LlamaConfig(vocab_size=4160, tie_word_embeddings=True, eos_token_id=None, **SIZES)
    folder = make(tmp_path / "m", config, 1)
    path, one, other = folder / "model.safetensors", "model.embed_tokens.weight", "lm_head.weight"
    tensors = load_file(path)
    assert other not in tensors
    save_file({other if name == one else name: each for name, each in tensors.items()}, path)
    assert inspect(folder).parameters == sum(each.numel() for each in tensors.values())
    drop(folder, other)
    with pytest.raises(UserError, match="lack"):
        inspect(folder)


def test_a_base_model_with_a_tied_head_is_whole(tmp_path):
    folder = saved(tmp_path / "m", tiny_hf_model("gpt2").transformer)
    assert inspect(folder).architecture == "GPT2LMHeadModel"


def test_a_file_in_pieces_is_read_as_its_index_says(folder):
    index(folder, "zz.safetensors")
    whole = inspect(folder)
    shutil.copy(folder / "zz.safetensors", folder / "unnamed.safetensors")
    assert inspect(folder) == whole


def test_tables_that_no_file_holds_are_counted(tmp_path):
    places = 1 << 12

    def config(count):
        return GPTJConfig(
            vocab_size=4160, n_embd=16, n_head=2, n_layer=3, rotary_dim=8, n_positions=count
        )

    folder = make(tmp_path / "m", config(places), 1)
    small = inspect(folder)
    parameters = sum(each.numel() for each in load_file(folder / "model.safetensors").values())
    assert small.nbytes >= 4 * parameters + 3 * places * 8 * 4, (
        "a table of 8 numbers a place in each layer"
    )
    rewrite(folder, n_positions=1 << 24)
    assert inspect(folder).nbytes >= 3 * (1 << 24) * 8 * 4
    with pytest.raises(UserError, match="needs 1.6. GB of memory"):
        admit(str(folder), Allowed((str(tmp_path),), most_bytes=1 << 30))


def test_a_model_from_the_hub_is_named_as_people_know_it(whole, tmp_path, monkeypatch):
    """Its folder in the cache is named by a number."""
    cache = tmp_path / "models--org--small" / "snapshots" / ("ab" * 20)
    shutil.copytree(whole, cache)
    assert inspect(cache).name == "org/small" and load_language_model(str(cache)).name == "small"
    headless(cache)
    monkeypatch.setattr(admission, "download", lambda *_: cache)
    with pytest.raises(UserError, match=r"^The weights of org/small lack lm_head.weight") as told:
        admit("org/small", Allowed(("*",)))
    assert str(tmp_path) not in str(told.value)


def test_a_whole_one_is_measured(whole):
    found = inspect(whole)
    assert found.architecture == "Qwen2ForCausalLM"
    tensors = load_file(whole / "model.safetensors")
    assert found.parameters == sum(tensor.numel() for tensor in tensors.values())


def test_only_what_the_host_allows_is_looked_at(folder, tmp_path, monkeypatch):
    (tmp_path / "secret").mkdir()
    shutil.copytree(folder, tmp_path / "secret" / "m")
    (folder.parent / "way-out").symlink_to(tmp_path / "secret" / "m")
    allowed, looked = Allowed((str(folder.parent), "org/*")), []
    assert admit(str(folder), allowed).folder == folder

    def look(*where):
        looked.append(where)
        raise UserError("seen.")

    monkeypatch.setattr(admission, "inspect", look)
    monkeypatch.setattr(admission, "download", look)
    wishes = [
        str(tmp_path / "secret" / "m"), str(folder.parent / "way-out"), str(folder / ".." / ".." / "secret" / "m"),
        "other/model", "../m", "org/../../m", "", " ", "a" * 400, "org/\0", "file:///etc", "~/m", "org", 3, None,
        "https://evil.example/m", "org/m/../..", str(folder.parent) + "-beside/m",
    ]  # fmt: skip
    for wish in wishes:
        with pytest.raises(UserError):
            admit(wish, allowed)
    assert looked == []
    with pytest.raises(UserError, match="seen"):
        admit("org/model", allowed)
    with pytest.raises(UserError, match="does not open"):
        admit(str(folder), Allowed())


def test_the_size_is_held_against_free_memory_first(folder, monkeypatch):
    monkeypatch.setattr(admission, "free_bytes", lambda: 100_000)
    with pytest.raises(UserError, match="GB are free"):
        admit(str(folder), Allowed((str(folder.parent),)))


def test_names_on_the_hub():
    assert is_hub_name("org/model-1.5B") and not is_hub_name("org/a..b") and not is_hub_name("a")
