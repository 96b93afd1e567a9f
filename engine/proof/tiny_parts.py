"""For proofs that enumerate every branch: a target with a vocabulary of a few tokens, and a small random part of every
kind that a drafter can need."""

from collections.abc import Iterable

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from engine.errors import UserError
from engine.methods import Drafter
from engine.model.language_model import LanguageModel
from engine.parts.kinds import Opener, kind_of
from engine.parts.loading import Models
from engine.parts.opening import language_model


def tiny_target(vocabulary: int, seed: int = 2, end_token: int | None = None) -> LanguageModel:
    """A tiny target of two layers, without parts. The weights are large, so that its laws differ from context to
    context."""
    module = tiny_module(vocabulary, seed, end_token, 2)
    with torch.no_grad():
        module.lm_head.weight *= 0.5
    return language_model(module, None, "tiny target", lean=False)


def tiny_module(vocabulary: int, seed: int, end_token: int | None, layers: int) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=vocabulary,
            hidden_size=16,
            intermediate_size=24,
            num_hidden_layers=layers,
            num_attention_heads=2,
            num_key_value_heads=1,
            max_position_embeddings=64,
            initializer_range=0.5,
            tie_word_embeddings=False,
            eos_token_id=end_token,
            bos_token_id=None,
            pad_token_id=None,
        )
    )


SEED = 2
"""The seed of each part's weights. With it, every drafter sometimes guesses right."""


def tiny_parts(target: LanguageModel, drafters: Iterable[type[Drafter]], opener: Opener) -> Models:
    """The target, and a random part for each role that at least one of the drafters needs or may use."""
    needs = {
        role: kind for cls in drafters for role, kind in {**cls.may_use(), **cls.needs}.items()
    }
    parts = {}
    for role, kind in needs.items():
        torch.manual_seed(SEED)
        parts[role] = tiny_part(kind, target, opener)
    return Models(target, parts)


def tiny_part(kind: str, target: LanguageModel, opener: Opener) -> object:
    make = kind_of(kind).tiny
    if make is None:
        raise UserError(
            f"A proof needs a tiny part of the kind {kind}, and its PartKind has no tiny=."
        )
    return make(target, opener)
