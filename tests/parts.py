"""Tiny parts by kind, for tests that go over every drafter. A new kind is one line of ``MAKERS``."""

import copy
from collections.abc import Callable, Iterable

import numpy as np
import torch

from engine.drafters import Drafter
from engine.options import resolve
from engine.parts.datastore import Datastore
from engine.parts.dflash_model import DFlashConfig, DFlashModel
from engine.parts.loading import Models
from engine.target.language_model import LanguageModel

Opener = Callable[[torch.nn.Module], LanguageModel]
"""Makes a language model of the engine out of a module: plain, lean, or on static buffers."""


SEED = 2
"""Of each part's weights: one with which every drafter guesses right now and then."""


def tiny_parts(target: LanguageModel, drafters: Iterable[type[Drafter]], opener: Opener) -> Models:
    """The target, and a random part for each role that one of the drafters needs."""
    needs = {role: kind for cls in drafters for role, kind in cls.needs.items()}
    parts = {}
    for role, kind in needs.items():
        torch.manual_seed(SEED)
        parts[role] = MAKERS[kind](target, opener)
    return Models(target, parts)


def on_trial(cls: type[Drafter], models: Models, **options) -> Drafter:
    """A drafter with the options that show it at work on tiny models."""
    return cls.build(resolve(cls.key, cls.options, {**cls.trial, **options}), models)


@torch.no_grad()
def _draft(target: LanguageModel, opener: Opener) -> LanguageModel:
    """The target with a little noise on it: its guesses are often right, and not always."""
    module = copy.deepcopy(target.model)
    for weight in module.parameters():
        weight += 0.1 * torch.randn_like(weight)
    return opener(module)


def _denoiser(target: LanguageModel, opener: Opener) -> DFlashModel:
    config = DFlashConfig(
        vocab_size=target.vocab_size,
        hidden_size=target.hidden_size,
        intermediate_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        block_size=4,
        target_layer_ids=(0, target.layers - 1),
        mask_token_id=0,
        num_target_layers=target.layers,
    )
    return DFlashModel(config).eval().requires_grad_(False)


def _datastore(target: LanguageModel, opener: Opener) -> Datastore:
    return tiny_datastore(target.vocab_size)


def tiny_datastore(vocabulary: int) -> Datastore:
    """A text of 400 tokens in which short runs come again."""
    rng = np.random.default_rng(SEED)
    return Datastore(rng.integers(0, min(vocabulary, 12), 400))


MAKERS = {"draft": _draft, "denoiser": _denoiser, "datastore": _datastore}
