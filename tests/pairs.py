"""A stranger's pair on the disk: two architectures, vocabularies padded to different sizes, a chat template,
several end-of-text ids, a generation config of its own."""

from functools import cache
from pathlib import Path

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
    LlamaConfig,
    Qwen2Config,
)

from engine.training.tokenizer import CHAT_TOKENS, TEMPLATE
from presets import family

TARGET_ROWS, DRAFT_ROWS = 4160, 4224
"""Rows of the embeddings; the tokenizer knows fewer tokens than either."""
SIZES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "bos_token_id": None,
    "pad_token_id": None,
}


@cache
def tokenizer():
    found = AutoTokenizer.from_pretrained(family().target)
    missing = [one for one in CHAT_TOKENS if one not in found.get_vocab()]
    found.add_special_tokens({"additional_special_tokens": missing})
    found.chat_template = TEMPLATE
    return found


def make(folder: Path, config, seed: int, **generation) -> Path:
    """Make a complete random checkpoint of this configuration, ready to be opened."""
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() >= 2:
                parameter.normal_(0, 0.2)
    model.generation_config = GenerationConfig(**generation)
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


def strangers_pair(folder: Path) -> tuple[Path, Path]:
    """Make (target, draft): a Qwen2 with several end-of-text ids and its own sampling, and a smaller Llama."""
    words = tokenizer().get_vocab()
    ends = [words["<|end|>"], words["<|endoftext|>"]]
    sampling = {"do_sample": True, "temperature": 0.7, "top_k": 20, "top_p": 0.8}
    target = Qwen2Config(vocab_size=TARGET_ROWS, eos_token_id=ends, **SIZES)
    small = {**SIZES, "num_hidden_layers": 1}
    draft = LlamaConfig(vocab_size=DRAFT_ROWS, eos_token_id=ends, **small)
    return (
        make(folder / "stranger", target, 1, eos_token_id=ends, **sampling),
        make(folder / "stranger-small", draft, 2, eos_token_id=ends),
    )
