"""A causal language model that sees a picture or a short film before its text: the patches of the picture or film are
rows of the same sequence.

Each patch has a token of its own, which stands at the front of the prompt. The patch's embedding is a sum: the learned
embedding of the patch's position in its frame, the learned embedding of the frame's number in the film, and a
projection of the patch's pixels. The projection has one hidden layer, as in LLaVA-1.5 (Liu et al., 2023), but there is
no vision encoder. A model that is shown a picture therefore differs from the same model without a picture only in some
rows of the embedding table, and any code that reads tokens also reads pictures. In all other respects the model is a
Llama.

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

MOST_SHOWN = 8  # pictures or films whose views a model keeps
SEEN = 0.25
"""Factor on the projection of a patch's pixels. Without it, the pixels would dominate the patch's embedding, and its
position would have hardly any effect."""


@strict
class CaptionsConfig(LlamaConfig):
    """The configuration of a model of pictures. picture_side, patch_side: the sides of a frame and of a patch, in
    pixels. patch_width: units in the hidden layer of the projection. first_patch: the token of the patch at the top
    left of the first frame; the tokens of the other patches follow it, row by row and frame by frame. frames: the
    number of frames in a film; 1 if the model sees no films."""

    model_type = "captions"
    picture_side: int = 48
    patch_side: int = 16
    patch_width: int = 192
    first_patch: int = 0
    frames: int = 1

    @property
    def patches(self) -> int:
        """The number of patches in one frame."""
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
        """The embeddings [B, T, H] of tokens [B, T]. The first K tokens are those of the patches [B, K, D]."""
        count = patches.shape[1]
        places = self.places(tokens[:, :count])
        text = self.model.embed_tokens(tokens[:, count:])
        return torch.cat([places + self.seen(patches).to(places.dtype), text], 1)

    def seen(self, patches: Tensor) -> Tensor:
        """The projections of patches: pixels [.., D] -> [.., H]."""
        return SEEN * self.patches(patches)

    def places(self, tokens: Tensor) -> Tensor:
        """The embeddings [.., K, H] of patch tokens [.., K] without pixels: the embedding of the patch's position in
        its frame, plus the embedding of the frame's number in the film."""
        per_frame, first = self.config.patches, self.config.first_patch
        places = self.model.embed_tokens(first + (tokens - first) % per_frame)
        return (
            places if self.frames is None else places + self.frames((tokens - first) // per_frame)
        )


AutoConfig.register(CaptionsConfig.model_type, CaptionsConfig)
AutoModelForCausalLM.register(CaptionsConfig, CaptionsForCausalLM)


def patches_of(pixels: Tensor, side: int) -> Tensor:
    """The patches of pixels, row by row: uint8 [.., F * S, S, 3] -> float [.., P, D] from -1 to 1. F frames of side S
    become P patches of D numbers. side: the side of a patch, in pixels."""
    cut = pixels.unflatten(-3, (-1, side)).unflatten(-2, (-1, side))  # [.., rows, y, columns, x, 3]
    return cut.transpose(-4, -3).flatten(-3).flatten(-3, -2) / 127.5 - 1


def pooled(rows: Tensor, across: int) -> Tensor:
    """The mean of each row of patches in a frame: [.., P, H] -> [.., P / across, H]. across: the patches in such a
    row."""
    return rows.unflatten(-2, (-1, across)).mean(-2)


class CaptionsModel(LanguageModel):
    """A language model of pictures, or a view of it that sees one picture or film. pixels: the picture or film, uint8
    [F * S, S, 3], or None. patch_tokens: the tokens of its patches; without a picture, the tokens of one frame."""

    pixels: np.ndarray | None = None

    @property
    def leading(self) -> Sequence[int]:
        """The patch tokens, which stand before every prompt. Raises UserError if the model sees no picture."""
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
        """A view of the model that sees this picture or film, uint8 [F * S, S, 3]."""
        key = pixels.tobytes()
        if key not in self._views:
            if len(self._views) >= MOST_SHOWN:
                del self._views[next(iter(self._views))]
            self._views[key] = self.with_rows(self.rows_of(pixels))
            self._views[key].pixels = pixels
        return self._views[key]

    @torch.no_grad()
    def rows_of(self, pixels: np.ndarray) -> Tensor:
        """The embeddings [P, H] of the patches of a picture or film, uint8 [F * S, S, 3]."""
        patches = patches_of(torch.from_numpy(np.array(pixels)), self.patch)
        tokens = self.model.config.first_patch + torch.arange(len(patches), device=self.device)
        return self.model.rows(tokens[None], patches[None].to(self.device, self.dtype))[0]

    def with_rows(self, rows: Tensor) -> CaptionsModel:
        """A view of the model in which the first K patch tokens have the embeddings ``rows`` [K, H]."""
        module = shallow(self.model)
        module.model = shallow(decoder_of(self.model))
        table = self.model.model.embed_tokens.weight.detach().clone()
        first = self.model.config.first_patch
        table[first:][: len(rows)] = rows
        module.model.embed_tokens = nn.Embedding.from_pretrained(table)
        view = copy.copy(self)
        view.model, view._views = module, {}
        view.patch_tokens = range(first, first + len(rows))
        return view


def patch_grid(model: CaptionsModel, values: Sequence[float]) -> list[list[float]]:
    """Arrange one number per patch in rows: the rows of patches of a picture, or one row per frame of a film."""
    per_frame = model.model.config.patches
    across = model.side // model.patch if len(values) == per_frame else per_frame
    return [list(values[at : at + across]) for at in range(0, len(values), across)]
