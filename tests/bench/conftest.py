"""Tiny models on disk, as the bench opens them, and benches that take seconds."""

from contextlib import nullcontext

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from engine.bench import contestants
from engine.fast.cpu.budget import Budget
from engine.parts.loading import ModelPaths
from tests.engine.tiny import VOCABULARY, tiny_hf_model


@pytest.fixture(scope="session")
def tiny_paths(tmp_path_factory) -> ModelPaths:
    """Return a target and a draft of another seed, with one tokenizer of whole words."""
    words = {"[UNK]": 0} | {f"w{i}": i for i in range(1, VOCABULARY)}
    words |= {"a": 1, "b": 2, "c": 3}
    tokenizer = Tokenizer(models.WordLevel({w: i for w, i in words.items()}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]")
    folder = tmp_path_factory.mktemp("models")
    for name, seed in (("target", 0), ("draft", 1)):
        tiny_hf_model("llama", seed).save_pretrained(folder / name)
        fast.save_pretrained(folder / name)
    return ModelPaths(str(folder / "target"), {"draft": str(folder / "draft")})


@pytest.fixture
def few_graphs(monkeypatch):
    """Leave a suite the budget of graphs that all tests have, so that it compiles none for single numbers of rows: each
    takes up to a second, and only saves time, which these tests do not compare."""
    monkeypatch.setattr(Budget, "unbounded", lambda self: nullcontext())


@pytest.fixture
def quick(usual_sizes, uncompiled):
    """For tiny models: the usual size of drafts, and passes through the modules."""


@pytest.fixture
def usual_sizes(monkeypatch):
    """Give drafts their usual size, because finding the size that pays takes longer than the rest of a test."""
    monkeypatch.setattr(
        contestants,
        "settle_size",
        lambda cls, options, *_: (
            options | ({cls.size_option: cls.usual_size} if cls.size_option else {})
        ),
    )
