"""The recipe `image`: trains a small Llama that writes pictures of digits, patch after patch.

    python -m engine.training image        -> <models>/families/image

Five minutes of one thread and under 1 GB of memory. A stopped training resumes.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from engine.model.picture import FIELD
from engine.training.checkpoint import export_model
from engine.training.common import say
from engine.training.loop import Budget, fit
from engine.training.new_models import parameter_count
from engine.training.pictures.digits import (
    ANY_TOKEN,
    END_TOKEN,
    FIRST_DIGIT,
    PICTURE,
    VOCABULARY,
    draw,
    picture_tokenizer,
    tokens_of,
)

ROWS = 64  # pictures per batch
UNNAMED = 0.1  # the share of pictures that have the token of any digit instead of their digit
MINUTES = 5.0
HELD_OUT = 1_000_000_007  # the seed of the held-out pictures


def picture_config(**changes) -> LlamaConfig:
    """The configuration of a model with about 0.4 M parameters. changes: replace fields."""
    shape = {
        "hidden_size": 96,
        "intermediate_size": 256,
        "num_hidden_layers": 4,
        "num_attention_heads": 3,
        "num_key_value_heads": 1,
        "head_dim": 32,
    }
    return LlamaConfig(
        vocab_size=VOCABULARY,
        max_position_embeddings=256,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=END_TOKEN,
        pad_token_id=END_TOKEN,
        dtype="float32",
        **{FIELD: PICTURE.to_dict()},
        **{**shape, **changes},
    )


def batch(index: int, seed: int, rows: int = ROWS) -> Tensor:
    """A batch of ``rows`` pictures as tokens. A row has the token of its digit (or the token for any digit), then the
    tokens of the patches, then the end token. The batch depends only on index, seed and rows."""
    generator = np.random.default_rng((seed, index))
    digits = generator.integers(0, 10, rows)
    pictures = tokens_of(draw(digits, generator))
    named = np.where(generator.random(rows) < UNNAMED, ANY_TOKEN, FIRST_DIGIT + digits)
    ends = np.full(rows, END_TOKEN)
    return torch.from_numpy(np.concatenate([named[:, None], pictures, ends[:, None]], 1))


def loss_of(model, tokens: Tensor) -> Tensor:
    """The model's loss on a batch, in nats per token, over the tokens of patches and the end tokens."""
    logits = model(tokens[:, :-1]).logits.float()
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


@torch.inference_mode()
def held_out(model) -> float:
    """The model's loss on held-out pictures, in nats per token."""
    model.eval()
    return sum(loss_of(model, batch(index, HELD_OUT)).item() for index in range(4)) / 4


def image(args) -> None:
    budget = Budget.of(args, MINUTES)
    train_pictures(
        args.models / "families" / "image", args.checkpoints / "image.pt", budget, args.seed
    )


def train_pictures(folder: Path, checkpoint: Path, budget: Budget, seed: int = 0, **shape) -> None:
    """Train the model, and write it with its tokenizer and card into the folder. shape: changes to
    ``picture_config``."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    model = LlamaForCausalLM(picture_config(**shape))
    parameters = parameter_count(model)
    length = f"{budget.tokens:,} tokens" if budget.tokens else f"{budget.minutes:g} minutes"
    say(f"image: {parameters:,} parameters; one thread, under 1 GB of memory, {length}")

    def learned(index: int) -> tuple[Tensor, int]:
        tokens = batch(index, seed)
        return loss_of(model, tokens), tokens.numel()

    fit(model, learned, budget, checkpoint, say=say)
    pictures, loss = budget.spent_tokens // (PICTURE.places + 2), held_out(model)
    say(f"{pictures:,} pictures; held out {loss:.3f} nats a token, perplexity {math.exp(loss):.2f}")
    export_model(model, folder, picture_tokenizer())
    (folder / "README.md").write_text(_card(parameters, pictures, loss), "utf-8")
    say(f"written to {folder}")


def _card(parameters: int, pictures: int, loss: float) -> str:
    return f"""# image: pictures of digits, patch after patch

A Llama of {parameters:,} parameters that writes {PICTURE.width} × {PICTURE.height} pictures in {PICTURE.levels} levels of
grey: {PICTURE.places} tokens, each a patch of {PICTURE.patch} × {PICTURE.patch} pixels, row by row. The prompt is a digit; any
other word asks for any digit. An end token follows the last patch.

Trained by `python -m engine.training image` on {pictures:,} pictures that the recipe draws itself
(`engine/training/pictures/digits.py`); there is no other data. Held-out loss {loss:.3f} nats a token.

`config.json` says by `draftscope_picture` how tokens are pixels. Weights are bf16 and load as float32.
Made to show speculative decoding on image tokens; good for nothing else. Apache-2.0.
"""
