"""Shared by students on a block drafter's last states: random blocks of the target's text, read by the frozen drafter, and the
accepted length of a chain that is read from left to right.

Letters in shapes: S windows, T tokens of each, A blocks of a window, L places of a block, H hidden size, V vocabulary, C
candidates.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.errors import UserError
from engine.methods.shared.dflash_model import DFlashModel
from engine.parts.digest import digest_of
from engine.training.counted_acceptance import run_lengths
from engine.training.diffusion import block_embeddings, random_anchors
from engine.training.distill import divergence_loss
from engine.training.divergences import forward_kl, total_variation
from engine.training.student import Lesson, Student

BLOCKS = 96
"""Blocks of each window of a lesson."""
AT_ONCE = 64  # blocks of a text that are measured at a time


class Blocks(NamedTuple):
    """hidden [S, A, L, H] and logits [S, A, L, V] of the drafter; befores, text: int64 [S, A, L], the tokens of the text before
    the places and at them, -1 beyond its end; teacher: [S, A, L, V], the target's logits; counts: bool [S, A, L]."""

    hidden: Tensor
    logits: Tensor
    befores: Tensor
    text: Tensor
    teacher: Tensor
    counts: Tensor


class BlockStudent(Student):
    """A part with a ``denoiser_digest``."""

    muon_rate = 0.01
    adam_rate = 5e-3

    def __init__(self, target, settings, denoiser: DFlashModel, digest: str | None) -> None:
        """Raises UserError for a drafter with a head that is cut."""
        super().__init__(target, settings)
        if denoiser.config.draft_vocab_size:
            raise UserError(
                "This part learns beside a diffusion drafter that has the target's whole head."
            )
        self.denoiser, self.digest = denoiser, digest

    @classmethod
    def of(cls, teacher, settings):
        return cls(teacher.module, settings, teacher.denoiser, digest_of(teacher.denoiser_folder))

    @property
    def feature_layers(self):
        return tuple(layer + 1 for layer in self.denoiser.config.target_layer_ids)

    @abstractmethod
    def scores(self, part, blocks: Blocks) -> tuple[Tensor, Tensor | None]:
        """(scores, candidates). Given the text's previous token, each place picks its token by the scores [S, A, L, C] of the
        candidates int64 [S, A, L, C]; candidates None: all tokens, C = V."""

    @torch.no_grad()
    def blocks(self, lesson: Lesson, anchors: Tensor) -> Blocks:
        """The blocks after these roots. anchors: places of the roots, int64 [S, A]."""
        config, tokens = self.denoiser.config, lesson.tokens
        roots, embedding = tokens.gather(1, anchors), self.target.get_input_embeddings()
        masked = block_embeddings(embedding, roots, config.block_size, config.mask_token_id)
        first = config.first_row
        hidden = self.denoiser(lesson.features, masked, anchors)[
            :, :, first : first + config.drafts
        ]
        places = anchors[..., None] + torch.arange(1, config.drafts + 1, device=tokens.device)
        padded = F.pad(tokens, (0, config.drafts), value=-1)
        counted = F.pad(lesson.counted, (0, config.drafts), value=False)
        rows = torch.arange(len(tokens), device=tokens.device)[:, None, None]
        ends = (places - 1).clamp(max=tokens.shape[1] - 1)
        return Blocks(
            hidden,
            self.target.get_output_embeddings()(hidden),
            padded[rows, places - 1].clamp(min=0),
            padded[rows, places],
            lesson.logits[rows, ends],
            counted[rows, places],
        )

    def loss(self, part, lesson: Lesson) -> Tensor:
        size = self.denoiser.config.block_size
        anchors = random_anchors(*lesson.tokens.shape, BLOCKS, size, lesson.index)
        return self.blocks_loss(part, self.blocks(lesson, anchors.to(lesson.tokens.device)))

    def blocks_loss(self, part, blocks: Blocks) -> Tensor:
        """The distance from the target's laws, half of it as the chance of a refusal; a place weighs as much as it is likely
        that all before it are kept by the backbone."""
        scores, candidates = self.scores(part, blocks)
        teacher = blocks.teacher if candidates is None else blocks.teacher.gather(-1, candidates)
        reached = survival(blocks)[blocks.counts]
        given = scores[blocks.counts], teacher[blocks.counts], reached
        return divergence_loss(*given, forward_kl) + divergence_loss(*given, total_variation)

    @torch.no_grad()
    def accepted(self, part, lesson: Lesson) -> Tensor:
        rows, length = lesson.tokens.shape
        found = torch.zeros_like(lesson.tokens)
        for some in torch.arange(length, device=lesson.tokens.device).split(AT_ONCE):
            blocks = self.blocks(lesson, some.expand(rows, -1))
            right = self.right(part, blocks)
            found[:, some] = run_lengths(right.flatten(0, 1)).unflatten(0, (rows, -1))
        return found

    def right(self, part, blocks: Blocks) -> Tensor:
        """bool [S, A, L]: whether the likeliest token is that of the text, given that those before it are."""
        scores, candidates = self.scores(part, blocks)
        best = scores.argmax(-1)
        if candidates is not None:
            best = candidates.gather(-1, best[..., None])[..., 0]
        return best == blocks.text


@torch.no_grad()
def survival(blocks: Blocks) -> Tensor:
    """[S, A, L]: the chance that the backbone's draws at all places before each are kept at temperature 1."""
    p, q = blocks.teacher.float().softmax(-1), blocks.logits.float().softmax(-1)
    kept = torch.minimum(p, q).sum(-1)
    return F.pad(kept[..., :-1].cumprod(-1), (1, 0), value=1.0)


@torch.no_grad()
def principal(rows: Tensor, rank: int) -> Tensor:
    """A code for each token [V, R] to begin with: its embedding [V, H] along the axes in which embeddings differ most, each of
    variance 1; random beyond H of them."""
    found = torch.randn(len(rows), rank, device=rows.device)
    centred = (rows - rows.mean(0)).float()
    axes = torch.svd_lowrank(centred, q=min(rank, *rows.shape), niter=4)[2]
    along = centred @ axes
    found[:, : along.shape[1]] = along / along.std(0).clamp(min=1e-6)
    return found
