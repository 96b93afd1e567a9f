"""A draft model that starts as copies of some of the target's layers and is then trained.

It uses the target's embeddings, and some rows of the target's head. So its files contain only the layers, the final
norm, and the table of the tokens whose rows are used. Its configuration is the target's with fewer layers, so it takes
the same inputs as the target. Drafters use it like any other language model; q is 0 for the tokens without a row.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from engine.errors import UserError
from engine.methods.shared.trimmed_head import trimmed_head
from engine.model.language_model import LanguageModel
from engine.model.layers import decoder_of, final_norm, stack_of
from engine.parts.module_part import ModulePart
from engine.parts.opening import language_model

LAYERS = "draftscope_layers"
"""The entry of config.json that lists which layers of the target the draft model's layers were copied from."""


class LayersDraft(ModulePart):
    """A draft model made of some of the target's layers, without embeddings and without a head. layers: the indices of
    the copied layers in the target, from 0. known: bool [V], True for the tokens whose rows of the target's head are
    used."""

    key, noun = "draft", "draft model"

    def __init__(self, module: PreTrainedModel, layers: Sequence[int], known: Tensor) -> None:
        """module: a model of the target's class, without embeddings and without a head (see ``bare``)."""
        super().__init__()
        self.module, self.origins = module, tuple(layers)
        self.register_buffer("t2d", known)

    @classmethod
    def begun(cls, target: PreTrainedModel, layers: Sequence[int], tokens: Tensor) -> LayersDraft:
        """Return the draft model before its training, with copies of the target's layers and final norm. tokens: int64
        [K], the tokens whose rows of the target's head are used."""
        known = torch.zeros(len(target.get_output_embeddings().weight), dtype=torch.bool)
        known[tokens.cpu()] = True
        draft = cls(bare(target, layers), layers, known)
        stack, own = (
            getattr(decoder_of(module), stack_of(decoder_of(module)))
            for module in (target, draft.module)
        )
        with torch.no_grad():
            for layer, origin in zip(own, layers, strict=True):
                layer.load_state_dict(stack[origin].state_dict())
            final_norm(draft.module).load_state_dict(final_norm(target).state_dict())
        return draft

    @classmethod
    def of_files(cls, config, tensors, target):
        layers = config.get(LAYERS)
        whole = isinstance(layers, list) and all(type(number) is int for number in layers)
        if not whole or not layers or not all(0 <= number < target.layers for number in layers):
            raise ValueError(f"its {LAYERS} names no layers of its target")
        known = torch.zeros(target.vocab_size, dtype=torch.bool)
        return cls(bare(target.model, layers), layers, known)

    def names(self):
        return {name.removeprefix("module."): name for name in self.state_dict()}

    def fields(self):
        return {"architectures": [type(self).__name__], LAYERS: list(self.origins)}

    def settle(self, config, target, folder):
        self.t2d = self.t2d.bool()
        if not self.t2d.any():
            raise UserError(f"The head of the draft model in {folder} has no tokens.")

    @classmethod
    def tiny(cls, target, opener=None):
        tokens = torch.arange(0, target.vocab_size, 2)
        return cls.begun(target.model, [target.layers - 1], tokens).requires_grad_(False)

    @property
    def tokens(self) -> Tensor:
        """The tokens whose rows of the target's head are used, int64 [K] in ascending order."""
        return self.t2d.nonzero()[:, 0]

    def states(self, embedded: Tensor) -> Tensor:
        """Embeddings of S whole texts [S, T, H] -> hidden states [S, T, H] after the final norm."""
        return decoder_of(self.module)(inputs_embeds=embedded, use_cache=False).last_hidden_state

    def beside(self, target: LanguageModel, name: str) -> LanguageModel:
        """Return the draft model as a language model, with the target's embeddings and the used rows of the target's
        head."""
        self.module.set_input_embeddings(target.model.get_input_embeddings())
        self.module.set_output_embeddings(trimmed_head(target.model, self.tokens))
        return language_model(self.module, target.tokenizer, name)


def bare(target: PreTrainedModel, layers: Sequence[int]) -> PreTrainedModel:
    """Return a model of the target's class with fresh weights, without embeddings and without a head. It has as many
    layers as ``layers`` has entries, each of the same type as that layer of the target."""
    config = copy.deepcopy(target.config)
    config._attn_implementation = None  # transformers' default, not that of the engine's sessions
    text = config.get_text_config(decoder=True)
    size, text.vocab_size = text.vocab_size, 1  # no table is made only to be dropped
    padding, text.pad_token_id = text.pad_token_id, None
    text.num_hidden_layers = len(layers)
    if getattr(text, "layer_types", None):
        text.layer_types = [text.layer_types[number] for number in layers]
    config.tie_word_embeddings = text.tie_word_embeddings = False
    module = type(target)(config)
    text.vocab_size, text.pad_token_id = size, padding
    module.set_input_embeddings(nn.Identity())
    module.set_output_embeddings(nn.Identity())
    return module.eval()
