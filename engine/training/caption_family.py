"""Trains the language models of the family captions: a small target that answers questions about pictures and films,
and a draft model that learns to answer from any part of a picture, or from none of it.

Both learn from scenes that code draws; there is no other data.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.model.captions import CaptionsForCausalLM, pooled
from engine.parts.digest import FIELD, digest_of
from engine.parts.files import WEIGHTS, halve
from engine.parts.opening import causal_model
from engine.parts.stored_file import compress
from engine.scenes.film_talk import FILM_KINDS
from engine.scenes.scene_talk import KINDS
from engine.training.caption_text import (
    IGNORED,
    PATCHES,
    PICTURES_FIRST,
    PLACES,
    Batch,
    Talks,
    caption_words,
    captions_config,
    place_words,
)
from engine.training.checkpoint import export_model
from engine.training.common import say
from engine.training.loop import Budget, fit, rate_scale
from engine.training.mimetic_start import mimetic_start
from engine.training.new_models import parameter_count

HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2}
TARGET = {"hidden_size": 128, "intermediate_size": 320, "num_hidden_layers": 4, "head_dim": 32}
"""The shape of the target, with about 0.9 M parameters."""
DRAFT = {"hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2, "head_dim": 16} | {
    "patch_width": 64
}
"""The shape of the draft model, with about 0.15 M parameters."""
UNSEEN, POOLED, WHOLE = 0.2, 0.1, 0.4
"""The shares of batches in which the draft model sees no patch (UNSEEN), the mean of each horizontal row of patches
(POOLED), and all patches (WHOLE). In all other batches it sees a random number of patches."""
SHARP = 16.0
"""In ``words_loss``, the factor on the products of the hidden vector of a patch and the embeddings of words. With this
factor, a short vector is enough to tell a patch's words apart. A long vector would drown the embedding of the patch's
position, which is added to it."""
FOUND, THEN, LEAST = 0.25, 0.6, 0.02
"""The schedule of the learning rates. After the share FOUND of a training, the model has learned to find the thing
that a question is about. From then on, the factor on the rates starts at THEN and falls linearly to LEAST, because
with larger steps the model would not learn to count and to distinguish positions."""
STEPS = 31  # the whole numbers of a stored matrix lie between -31 and 31
MEASURED = 256  # held-out scenes or films measured for each kind of question

Loss = Callable[[CaptionsForCausalLM, int], tuple[Tensor, int]]
"""(model, index of the batch) -> the loss of the model on the batch, and how many tokens the batch has."""


def falling(progress: float) -> float:
    """The factor on the learning rates at this progress of the training, from 0 to 1."""
    if progress < FOUND:
        return rate_scale(progress)
    return LEAST + (THEN - LEAST) * (1 - progress) / (1 - FOUND)


def train_target(folder: Path, checkpoints: Path, budget: Budget, seed: int = 0, **shape) -> None:
    """Train the target, and write it with its tokenizer into the folder. shape: changes to ``TARGET`` and ``HEADS``."""
    tokenizer = caption_words()
    talks = Talks(tokenizer, seed, pictures_first=PICTURES_FIRST)
    model = trained(
        TARGET | HEADS | shape,
        lambda model, index: whole_loss(model, talks.mixed(index)),
        budget,
        checkpoints / "captions.pt",
        falling,
    )
    export(model, folder, tokenizer)
    say(f"right: {right_shares(causal_model(str(folder)))}")


def train_draft(folder: Path, checkpoints: Path, budget: Budget, seed: int = 0, **shape) -> None:
    """Train a draft model for the target in this folder, and write it to <folder>/draft. shape: changes to ``DRAFT``
    and ``HEADS``."""
    talks = Talks(caption_words(), seed + 1, pictures_first=PICTURES_FIRST)
    model = trained(
        DRAFT | HEADS | shape,
        lambda model, index: partly_loss(model, talks.mixed(index), index),
        budget,
        checkpoints / "captions-draft.pt",
        falling,
    )
    export(model, folder / "draft", None, {FIELD: digest_of(folder)})
    say(f"right: {right_shares(causal_model(str(folder / 'draft')))}")


def trained(
    shape: dict,
    loss: Loss,
    budget: Budget,
    checkpoint: Path,
    rate: Callable[[float], float] = rate_scale,
) -> CaptionsForCausalLM:
    torch.manual_seed(0)
    model = CaptionsForCausalLM(captions_config(len(caption_words()), **shape))
    mimetic_start(model)
    say(
        f"{checkpoint.stem}: {parameter_count(model):,} parameters; one thread, under 1 GB of memory"
    )
    fit(model, partial(loss, model), budget, checkpoint, say=say, rate=rate)
    return model


def whole_loss(model: CaptionsForCausalLM, batch: Batch) -> tuple[Tensor, int]:
    """The target's loss on a batch, in nats per token, and the number of tokens. The loss is that of the answers, with
    all patches seen, plus ``words_loss``."""
    loss = answers_loss(batch, logits_of(model, batch, batch.patches)) + words_loss(model, batch)
    return loss, batch.tokens.numel()


def answers_loss(batch: Batch, logits: Tensor) -> Tensor:
    return F.cross_entropy(logits.flatten(0, 1), batch.labels.flatten(), ignore_index=IGNORED)


def words_loss(model: CaptionsForCausalLM, batch: Batch) -> Tensor:
    """The cross-entropy of naming each patch, in nats per word. It makes the hidden vector of a patch similar to the
    embeddings of the words for the thing in it, and the embedding of a patch's position similar to the embeddings of
    the words for that position.

    As a result, the word "ring" in a question attends to the patch with the ring. Without this loss a model learns to
    recognise things, but takes long to learn which thing a question is about.
    """
    words, first = model.model.embed_tokens.weight, model.config.first_patch
    logits = SHARP * (model.seen(batch.patches) @ words.T).float()
    per_word = logits[..., None, :].expand(-1, -1, 2, -1)
    places = SHARP * (words[first:][:PATCHES] @ words.T).float()
    named = F.cross_entropy(
        places[:, None].expand(-1, 2, -1).flatten(0, 1), place_words().flatten()
    )
    return F.cross_entropy(per_word.flatten(0, 2), batch.named.flatten()) + named


def partly_loss(model: CaptionsForCausalLM, batch: Batch, index: int) -> tuple[Tensor, int]:
    """The draft model's loss on a batch, in nats per token, and the number of tokens. Which patches the model sees
    depends on ``index``: none, the pooled patches, all patches, or a random subset, which is small as often as
    large."""
    generator, patches = np.random.default_rng(index), batch.patches.shape[1]
    chance, way = generator.random(), "pruned"
    count = patches if chance > 1 - WHOLE else round(patches ** generator.random())
    kept = np.sort(generator.choice(patches, count, replace=False))
    if chance < UNSEEN + POOLED:
        way = "text only" if chance < UNSEEN else "pooled"
    batch, logits = seen_by(model, batch, way, kept)
    return answers_loss(batch, logits) + words_loss(model, batch), batch.tokens.numel()


def seen_by(
    model: CaptionsForCausalLM, batch: Batch, way: str, kept: np.ndarray
) -> tuple[Batch, Tensor]:
    """Run the model on a batch of which it sees only a part of each picture. Returns the batch without the unseen
    patches, and the model's logits for it, [B, T, V]. way: "text only", "pruned" (only the patches with the numbers
    ``kept``) or "pooled"."""
    if way == "text only":
        return batch, logits_of(model, batch, batch.patches[:, :0])
    if way == "pruned":
        batch = batch.without(torch.from_numpy(kept))
        return batch, logits_of(model, batch, batch.patches)
    rows = pooled(model.rows(batch.tokens[:, : batch.patches.shape[1]], batch.patches), PLACES)
    batch = batch.without(torch.arange(rows.shape[1]))
    text = model.rows(batch.tokens, batch.patches[:, :0])[:, rows.shape[1] :]
    return batch, logits_of(model, batch, torch.cat([rows, text], 1), embedded=True)


def logits_of(
    model: CaptionsForCausalLM, batch: Batch, seen: Tensor, embedded: bool = False
) -> Tensor:
    """The model's logits [B, T, V] for a batch, in float32. seen: for each of the K patches that the model sees its D
    pixel values, [B, K, D]; if ``embedded``, instead the embeddings of all tokens and patches, [B, T, H]."""
    output = model(
        inputs_embeds=seen if embedded else model.rows(batch.tokens, seen),
        attention_mask=batch.mask,
        position_ids=batch.places,
        use_cache=False,
    )
    return output.logits.float()


def states_of(target: CaptionsForCausalLM, batch: Batch, before_last: bool = False) -> Tensor:
    """The target's hidden states [B, T, H] for a batch with all patches: after the final norm, or, if ``before_last``,
    before the last layer."""
    output = target.model(
        inputs_embeds=target.rows(batch.tokens, batch.patches),
        attention_mask=batch.mask,
        position_ids=batch.places,
        use_cache=False,
        output_hidden_states=before_last,
    )
    return output.hidden_states[-2] if before_last else output.last_hidden_state


@torch.no_grad()
def right_shares(model: CaptionsForCausalLM) -> dict[str, float]:
    """Kind of question -> the share of held-out questions that the model answers greedily without a wrong token. An
    answer is right if, after each prefix of the true answer, its next token is the likeliest."""
    model.eval()
    talks, shares = Talks(caption_words(), held_out=True), {}
    for kind in (*KINDS, *FILM_KINDS):
        batch = talks.batch(0, MEASURED, kind)
        likeliest = logits_of(model, batch, batch.patches).argmax(-1)
        right = (likeliest == batch.labels) | (batch.labels == IGNORED)
        shares[kind] = round(right.all(1).float().mean().item(), 3)
    return shares


def export(model, folder: Path, tokenizer, about: dict | None = None) -> None:
    """Write the model to a folder, with its matrices rounded to whole numbers from -STEPS to STEPS, and compressed.
    about: further fields for its config."""
    export_model(model, folder, tokenizer, about)
    halve(folder, STEPS)
    compress(folder / WEIGHTS)
