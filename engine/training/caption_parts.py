"""The recipe `captions`: trains a target that sees pictures and films, its draft model, and what three drafters need
besides: the gate of ``specvlm``, the cell of ``msd`` and the cell of ``flash_mm``.

    python -m engine.training captions        -> <models>/families/captions, 105 minutes of one thread

A stopped training resumes.
"""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.methods.flash_mm.part import LatentCell, LatentSizes
from engine.methods.shared.eagle_layout import write_cell
from engine.methods.shared.picture_cell import PictureCell
from engine.model.captions import CaptionsForCausalLM
from engine.parts.digest import FIELD, digest_of
from engine.parts.files import WEIGHTS, halve
from engine.parts.opening import causal_model
from engine.parts.stored_file import compress
from engine.training.caption_family import STEPS, states_of, train_draft, train_target
from engine.training.caption_gate import train_gate
from engine.training.caption_text import IGNORED, Batch, Talks, caption_words
from engine.training.cell_training import FEATURES, NOISE, TOKENS, eagle_config, new_cell
from engine.training.common import say
from engine.training.loop import Budget, fit

MINUTES = 105
RATES = {"adam_rate": 1e-3, "muon_rate": 0.01}


def captions(args) -> None:
    torch.set_num_threads(1)
    budget, folder = Budget.of(args, MINUTES), args.models / "families" / "captions"
    for train, share in (
        (train_target, 0.54),
        (train_draft, 0.32),
        (train_gate, 0.02),
        (train_msd, 0.05),
        (train_flash, 0.07),
    ):
        train(folder, args.checkpoints, budget.part(share), args.seed)


def train_msd(folder: Path, checkpoints: Path, budget: Budget, seed: int = 0) -> None:
    """Train the cell of ``msd`` for the target in this folder, and write it to <folder>/parts/msd.

    The training has the two stages of MSD (Lin et al., 2025). The first half is on text alone. In the second half, the
    share of batches with pictures rises from 0 to 1. All texts of this family are about pictures, so "text alone" means
    that the target sees the picture, but the rows of text in the cell may not attend to the rows of the picture.
    """
    target = causal_model(str(folder)).eval().requires_grad_(False)
    talks = Talks(caption_words(), seed + 3)
    torch.manual_seed(0)
    cell = PictureCell.of(new_cell(eagle_config(target.config, "eagle"), target))

    def loss(index: int) -> tuple[Tensor, int]:
        batch = talks.mixed(index)
        drawn = torch.rand((), generator=torch.Generator().manual_seed(index))
        seen = bool(drawn < 2 * budget.progress() - 1)
        return msd_loss(cell, target, batch, seen), batch.tokens.numel()

    fit(cell, loss, budget, checkpoints / "captions-msd.pt", say=say, **RATES)
    part = folder / "parts" / "msd"
    write_cell(cell, part, {FIELD: digest_of(folder)})
    _shrink(part)


def train_flash(folder: Path, checkpoints: Path, budget: Budget, seed: int = 0) -> None:
    """Train the cell of ``flash_mm`` for the target in this folder, and write it to <folder>/parts/flash_mm."""
    target = causal_model(str(folder)).eval().requires_grad_(False)
    talks = Talks(caption_words(), seed + 4)
    torch.manual_seed(0)
    cell = new_latent_cell(target)

    def loss(index: int) -> tuple[Tensor, int]:
        batch = talks.mixed(index)
        return flash_loss(cell, target, batch), batch.tokens.numel()

    fit(cell, loss, budget, checkpoints / "captions-flash.pt", say=say, **RATES)
    part = folder / "parts" / "flash_mm"
    cell.save(part, {FIELD: digest_of(folder)})
    _shrink(part)


def _shrink(part: Path) -> None:
    halve(part, STEPS)
    compress(part / WEIGHTS)


def new_latent_cell(target: CaptionsForCausalLM) -> LatentCell:
    """The cell of ``flash_mm`` before its training. The projection of its inputs returns the feature, plus a small
    random projection of the token's embedding. Its attention is a copy of the attention in the target's last layer. Its
    feed-forward block adds nothing."""
    config = target.config
    heads = config.num_attention_heads, config.num_key_value_heads
    cell = LatentCell(LatentSizes(config.hidden_size, *heads, config.head_dim))
    theirs, width = target.model.layers[-1].self_attn, config.hidden_size
    with torch.no_grad():
        cell.fc.weight[:, width:] = torch.eye(width)
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            getattr(cell.attention, name).weight.copy_(getattr(theirs, name).weight)
    nn.init.zeros_(cell.down.weight)
    return cell


def _taught(target: CaptionsForCausalLM, batch: Batch) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Four tensors from the target for a batch: its features [B, T, H], its laws p [B, T, V], the embeddings of its
    tokens and patches [B, T, H], and states [B, T - 1, H]. The states are the inputs of a cell: for each token but the
    first, the feature of the token before it in its text, plus noise. The first token of a text has the last patch
    before it."""
    with torch.no_grad():
        features = states_of(target, batch).float()
        law = target.lm_head(features).softmax(-1)
        embedded = target.rows(batch.tokens, batch.patches)
    columns, patches = torch.arange(batch.tokens.shape[1]), batch.patches.shape[1]
    starts = batch.texts != batch.texts.roll(1, 1)
    before = torch.where(starts, torch.tensor(patches - 1), columns - 1)[:, 1:]
    states = features.gather(1, before[..., None].expand(-1, -1, features.shape[-1]))
    return features, law, embedded, states + NOISE * (2 * torch.rand_like(states) - 1)


def _missed(target, made: Tensor, features: Tensor, law: Tensor, counted: Tensor) -> Tensor:
    """EAGLE's loss of drafted features ``made`` [.., H], compared with the target's features [.., H] and laws p [..,
    V]. counted: bool [..], True where the next token belongs to an answer; only these positions enter the loss."""
    missed = F.smooth_l1_loss(made.float(), features, reduction="none").mean(-1)
    drafted = target.lm_head(made).float().log_softmax(-1)
    parted = -(law * drafted).sum(-1)
    return (FEATURES * missed + TOKENS * parted)[counted].mean()


def msd_loss(
    cell: PictureCell, target: CaptionsForCausalLM, batch: Batch, seen: bool = True
) -> Tensor:
    """EAGLE's loss on the answers of a batch. Row j of the cell receives token j, and the feature of the token before
    it in its text. seen: whether rows of text may attend to the rows of the picture."""
    features, law, embedded, states = _taught(target, batch)
    patches, mask = batch.patches.shape[1], batch.mask[:, :, 1:, 1:]
    states[:, : patches - 1] = 0.0
    if not seen:
        mask = mask.clone()
        mask[:, :, patches - 1 :, : patches - 1] = False

    def attend(layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(queries, keys, values, mask, enable_gqa=True)

    drafted = cell(states, embedded[:, 1:], cell.turn(batch.places[:, 1:] - 1), attend)
    counted = batch.labels[:, 1:] != IGNORED
    return _missed(target, drafted, features[:, 1:], law[:, 1:], counted)


def flash_loss(cell: LatentCell, target: CaptionsForCausalLM, batch: Batch) -> Tensor:
    """FLASH's loss on the answers of a batch. From each token, the cell drafts K features at once: that of the token
    itself and those of the next K - 1 tokens. The loss is the sum of EAGLE's losses for these K features. Losses at
    next tokens that belong to another text are left out."""
    features, law, embedded, states = _taught(target, batch)
    patches = batch.patches.shape[1]
    drafted_features = flash_features(cell, batch, features, embedded, states)
    texts, losses = batch.texts[:, patches:], []
    for ahead in range(cell.sizes.features):
        here, there = slice(patches + ahead, None), slice(None, texts.shape[1] - ahead)
        counted = (batch.labels[:, here] != IGNORED) & (batch.texts[:, here] == texts[:, there])
        drafted = drafted_features[:, there, ahead]
        losses.append(_missed(target, drafted, features[:, here], law[:, here], counted))
    return torch.stack(losses).sum()


def flash_features(
    cell: LatentCell, batch: Batch, features: Tensor, embedded: Tensor, states: Tensor
) -> Tensor:
    """The features that the cell drafts from the tokens of text, [B, T - P, K, H]. A row of the batch has T tokens:
    first P patches, then T - P tokens of text, from each of which the cell drafts K features. features, embedded,
    states: as in ``_taught``."""
    patches = batch.patches.shape[1]
    latents = cell.latents(features[:, :patches])
    pairs = cell.pairs(states[:, patches - 1 :], embedded[:, patches:])
    count, rows = latents.shape[1], pairs.shape[1]
    mask = batch.mask[:, :, patches:, patches:]
    mask = torch.cat([mask.new_ones(*mask.shape[:3], count), mask], -1)
    first = mask.new_ones(len(mask), 1, count, count).tril()
    mask = torch.cat([F.pad(first, (0, rows)), mask], 2)
    places = batch.places[:, patches:] - patches + count
    places = torch.cat([torch.arange(count).expand(len(places), -1), places], 1)

    def attend(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(queries, keys, values, mask, enable_gqa=True)

    return cell(torch.cat([latents, pairs], 1), cell.turn(places), attend)[:, count:]
