"""Tiny random models of many architectures, each small enough to run in milliseconds."""

import torch
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    Gemma3TextConfig,
    GPT2Config,
    GptOssConfig,
    LlamaConfig,
    MistralConfig,
    Qwen2Config,
    Qwen3Config,
)

from engine.model.language_model import LanguageModel
from engine.parts.opening import language_model

VOCABULARY = 61
WINDOW = 12  # shorter than the texts of the tests, so that it matters

_SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}

CONFIGS = {
    "llama": lambda: LlamaConfig(**_SIZES),
    "mistral": lambda: MistralConfig(**_SIZES, sliding_window=WINDOW),
    "qwen2": lambda: Qwen2Config(
        **_SIZES, use_sliding_window=True, sliding_window=WINDOW, max_window_layers=1
    ),
    "qwen3": lambda: Qwen3Config(**_SIZES, head_dim=16),
    "gemma2": lambda: Gemma2Config(
        **_SIZES, head_dim=16, sliding_window=WINDOW, attn_logit_softcapping=2.0
    ),
    "gemma3": lambda: Gemma3TextConfig(**_SIZES, head_dim=16, sliding_window=WINDOW),
    "gpt2": lambda: GPT2Config(
        vocab_size=VOCABULARY,
        n_embd=32,
        n_layer=3,
        n_head=4,
        n_positions=128,
        bos_token_id=None,
        eos_token_id=None,
    ),
    "gpt_oss": lambda: GptOssConfig(
        **_SIZES,
        head_dim=16,
        sliding_window=WINDOW,
        num_local_experts=2,
        num_experts_per_tok=1,
    ),
}


def tiny_hf_model(architecture: str = "llama", seed: int = 0, **changes):
    """A random transformers model in fp32 whose next tokens vary with the text."""
    torch.manual_seed(seed)
    config = CONFIGS[architecture]()
    for name, value in changes.items():
        setattr(config, name, value)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() >= 2:
                parameter.normal_(0, 0.25)
    return model


def generated(module, prompt: list[int], count: int, **more) -> list[int]:
    """Return the text that transformers' generate writes after the prompt, by default greedily."""
    ids = torch.tensor([prompt])
    settings = {
        "attention_mask": torch.ones_like(ids),
        "do_sample": False,
        "pad_token_id": 0,
        **more,
    }
    return module.generate(ids, max_new_tokens=count, **settings)[0, len(prompt) :].tolist()


def tiny_model(architecture: str = "llama", seed: int = 0, **changes) -> LanguageModel:
    """Read through its module, because compiling takes longer than any test with so small a model."""
    module = tiny_hf_model(architecture, seed, **changes)
    return language_model(module, None, architecture, lean=False)
