"""The real chat model, where whoever runs the tests has fetched it: its tokens, its ends, and the text of `generate`."""

import os
from functools import cache
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from engine.__main__ import main
from engine.parts.digest import FIELD, digest_of
from engine.parts.files import read_config
from engine.run import RunRequest
from presets import asked, family
from presets.fetched import missing_target
from tests.engine.family import ran, tokens_of
from tests.engine.tiny import generated

NAME = "smollm2"
QUESTIONS = [
    "What is the capital of France?",
    "Write a Python function that reverses a string.",
    "What is 17 + 25? Work it out step by step.",
    "Translate to Japanese, with an emoji: good morning.",
    'Give me a JSON object with the keys "name" and "age".',
    "Tell me a short story about a fox and a lantern.",
]
TOKENS = 64


@pytest.fixture(scope="module", autouse=True)
def there():
    before = os.environ.get("DRAFTSCOPE_REAL_MODELS")
    os.environ["DRAFTSCOPE_REAL_MODELS"] = os.environ["DRAFTSCOPE_TESTED_MODELS"]
    try:
        if missing_target(NAME) is not None:
            pytest.skip("the real chat model is not here; `make real` fetches it")
        yield
    finally:
        os.environ.pop("DRAFTSCOPE_REAL_MODELS")
        if before is not None:
            os.environ["DRAFTSCOPE_REAL_MODELS"] = before


@pytest.fixture(scope="module")
def tokenizer(there):
    return AutoTokenizer.from_pretrained(family(NAME).target)


@pytest.fixture(scope="module")
def answer(there):
    """Return answer(tokens of a prompt), which returns the text that transformers writes after it. Each text is written
    once."""
    module = AutoModelForCausalLM.from_pretrained(family(NAME).target, dtype=torch.float32)
    return cache(lambda prompt: generated(module, list(prompt), TOKENS))


def test_its_tokens_are_the_models_own(tokenizer):
    assert len(tokenizer) == 49_152
    ids = tokenizer("<|endoftext|><|im_start|>user\nHi<|im_end|>")["input_ids"]
    assert ids[:2] == [0, 1] and ids[-1] == 2 == tokenizer.eos_token_id
    assert (tokenizer.bos_token, tokenizer.unk_token) == ("<|im_start|>", "<|endoftext|>")
    for text in ("In 2024, 3 × 12 = 36.", "naïve 日本語 🌳", "def f(x):\n    return x\n"):
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    digits = tokenizer.tokenize("2024")
    assert digits == list("2024"), "each digit is a token"


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("drafter", ["none", "suffix"])
def test_its_answer_is_that_of_generate(question, drafter, answer):
    wish = {"drafter": drafter, "max_new_tokens": TOKENS, **asked(NAME, question)}
    trace = ran(RunRequest(models=family(NAME), **wish))
    assert tokens_of(trace) == answer(tuple(trace.run["prompt"]["tokens"]))


def test_a_prompt_beyond_its_context_is_one_sentence(tmp_path, capsys):
    file = tmp_path / "long.txt"
    file.write_text("x " * 8200)
    assert main(["run", "--target", NAME, "--drafter", "none", "--prompt-file", str(file)]) == 2
    error = capsys.readouterr().err
    assert "holds 8192" in error and error.count("\n") == 1


def test_its_parts_know_it():
    digest = digest_of(family(NAME).target)
    for part in family(NAME).parts.values():
        assert read_config(Path(part)).get(FIELD) in (None, digest)
