"""A causal language model that sees a picture or a short film before its text. Their patches are rows of the same sequence.

Each patch has a token of its own, which stands at the front of the prompt; its embedding is the learned one of that place, that
of its frame in a film, and a projection of the patch's pixels, with one hidden layer, as in LLaVA-1.5 (Liu et al., 2023), but without a vision encoder.
So a model that is shown a picture differs from one that is not in some rows of a table, and everything that reads tokens
reads pictures. Everything else is a Llama.

A film is a strip of its frames, one below the other; a picture is a strip of one frame.

Letters in shapes: S side of a frame, F frames, P patches of all frames, D numbers of a patch, H hidden size.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from engine.errors import UserError
from engine.model.language_model import LanguageModel
from engine.model.layers import decoder_of, shallow

MOST_SHOWN = 8  # pictures that are remembered for one model
SEEN = 0.25
"""Factor on what is seen of a patch: without it a row says much of the pixels and next to nothing of the place."""


@strict
class CaptionsConfig(LlamaConfig):
    """picture_side, patch_side: in pixels. patch_width: units of the projection. first_patch: the token of the patch at the top left
    of the first frame; those of the others follow it, row by row and frame by frame. frames: of a film; 1: it sees no films."""

    model_type = "captions"
    picture_side: int = 48
    patch_side: int = 16
    patch_width: int = 192
    first_patch: int = 0
    frames: int = 1

    @property
    def patches(self) -> int:
        """Of one frame."""
        return (self.picture_side // self.patch_side) ** 2


class CaptionsForCausalLM(LlamaForCausalLM):
    config_class = CaptionsConfig

    def __init__(self, config: CaptionsConfig) -> None:
        super().__init__(config)
        size, wide = 3 * config.patch_side**2, config.patch_width
        self.patches = nn.Sequential(
            nn.Linear(size, wide, bias=False),
            nn.GELU(),
            nn.Linear(wide, config.hidden_size, bias=False),
        )
        self.frames = nn.Embedding(config.frames, config.hidden_size) if config.frames > 1 else None
        self.post_init()

    def rows(self, tokens: Tensor, patches: Tensor) -> Tensor:
        """Embeddings [B, T, H] of tokens [B, T], of which the first stand for these patches [B, K, D]."""
        count = patches.shape[1]
        places = self.places(tokens[:, :count])
        text = self.model.embed_tokens(tokens[:, count:])
        return torch.cat([places + self.seen(patches).to(places.dtype), text], 1)

    def seen(self, patches: Tensor) -> Tensor:
        """[.., D] -> [.., H]"""
        return SEEN * self.patches(patches)

    def places(self, tokens: Tensor) -> Tensor:
        """Embeddings [.., K, H] of patch tokens [.., K] of which nothing is seen: of the place in a frame, and of the frame."""
        each, first = self.config.patches, self.config.first_patch
        places = self.model.embed_tokens(first + (tokens - first) % each)
        return places if self.frames is None else places + self.frames((tokens - first) // each)


AutoConfig.register(CaptionsConfig.model_type, CaptionsConfig)
AutoModelForCausalLM.register(CaptionsConfig, CaptionsForCausalLM)


def patches_of(pixels: Tensor, side: int) -> Tensor:
    """uint8 [.., F * S, S, 3] -> float [.., P, D] from -1 to 1, row by row. side: of a patch, in pixels."""
    cut = pixels.unflatten(-3, (-1, side)).unflatten(-2, (-1, side))  # [.., rows, y, columns, x, 3]
    return cut.transpose(-4, -3).flatten(-3).flatten(-3, -2) / 127.5 - 1


def pooled(rows: Tensor, across: int) -> Tensor:
    """[.., P, H] -> [.., P / across, H]: the means of the patches that stand side by side. across: patches of a side."""
    return rows.unflatten(-2, (-1, across)).mean(-2)


class CaptionsModel(LanguageModel):
    """pixels: uint8 [F * S, S, 3] of the picture or film that it has been shown; None where it has been shown none. patch_tokens: those
    of what it has been shown, of one picture where that is nothing."""

    pixels: np.ndarray | None = None

    @property
    def leading(self) -> Sequence[int]:
        """The patches. Raises UserError where it has been shown no picture."""
        if self.pixels is None:
            raise UserError(f"{self.name} is asked about a picture, and there is none.")
        return self.patch_tokens

    def __init__(self, model: CaptionsForCausalLM, tokenizer, name: str) -> None:
        model.set_attn_implementation("sdpa")  # a copy of an opened module has the engine's
        with (
            torch.no_grad()
        ):  # transformers hooks the layers once: before there are views, which share them
            model(
                torch.zeros(1, 1, dtype=torch.long, device=model.device), output_hidden_states=True
            )
        super().__init__(model, tokenizer, name)
        self.side, self.patch = model.config.picture_side, model.config.patch_side
        self.frames = model.config.frames
        first = model.config.first_patch
        self.patch_tokens = range(first, first + model.config.patches)
        self._views: dict[bytes, CaptionsModel] = {}

    def seeing(self, pixels: np.ndarray) -> CaptionsModel:
        """A view of the model that sees a picture or a film uint8 [F * S, S, 3]."""
        key = pixels.tobytes()
        if key not in self._views:
            if len(self._views) >= MOST_SHOWN:
                del self._views[next(iter(self._views))]
            self._views[key] = self.with_rows(self.rows_of(pixels))
            self._views[key].pixels = pixels
        return self._views[key]

    @torch.no_grad()
    def rows_of(self, pixels: np.ndarray) -> Tensor:
        """[P, H]: the embeddings of the patches of a picture or a film."""
        patches = patches_of(torch.from_numpy(np.array(pixels)), self.patch)
        tokens = self.model.config.first_patch + torch.arange(len(patches), device=self.device)
        return self.model.rows(tokens[None], patches[None].to(self.device, self.dtype))[0]

    def with_rows(self, rows: Tensor) -> CaptionsModel:
        """The same model, in which the first K patch tokens have these embeddings [K, H]."""
        module = shallow(self.model)
        module.model = shallow(decoder_of(self.model))
        table = self.model.model.embed_tokens.weight.detach().clone()
        first = self.model.config.first_patch
        table[first:][: len(rows)] = rows
        module.model.embed_tokens = nn.Embedding.from_pretrained(table)
        made = copy.copy(self)
        made.model, made._views = module, {}
        made.patch_tokens = range(first, first + len(rows))
        return made


def patch_grid(model: CaptionsModel, values: Sequence[float]) -> list[list[float]]:
    """One number for each patch -> the numbers as rows of the picture; a film has one row for each frame."""
    each = model.model.config.patches
    across = model.side // model.patch if len(values) == each else each
    return [list(values[at : at + across]) for at in range(0, len(values), across)]
