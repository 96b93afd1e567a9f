"""The base class of students whose part uses the last hidden states of a block drafter (a diffusion drafter that fills
a block of mask tokens in one pass).

A lesson is cut into random blocks of the target's text, on which the frozen block drafter runs. The accepted length is
that of a chain whose positions are filled from left to right.

Letters in shapes: S windows, T tokens of each, A blocks of a window, L drafted positions of a block, H hidden size, V
vocabulary, C candidates.
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
"""The number of blocks in each window of a lesson."""
AT_ONCE = 64  # how many blocks of a text are measured at once


class Blocks(NamedTuple):
    """The blocks of a lesson.

    Letters in shapes: S windows, A blocks of each, L drafted positions of a block, H hidden size, V vocabulary.

    hidden: the block drafter's hidden states, [S, A, L, H]. logits: the block drafter's logits, [S, A, L, V]. befores:
    int64 [S, A, L], the text's token before each position; 0 beyond the end of the text. text: int64 [S, A, L], the
    text's token at each position; -1 beyond the end. teacher: the target's logits for each position, [S, A, L, V].
    counts: bool [S, A, L], whether a position enters the loss.
    """

    hidden: Tensor
    logits: Tensor
    befores: Tensor
    text: Tensor
    teacher: Tensor
    counts: Tensor


class BlockStudent(Student):
    """Base class of students whose part works with the outputs of a frozen block drafter."""

    muon_rate = 0.01
    adam_rate = 5e-3

    def __init__(self, target, settings, denoiser: DFlashModel, digest: str | None) -> None:
        """denoiser: the block drafter. digest: the digest of the block drafter's folder. Raises UserError if the block
        drafter's head lacks some of the target's tokens."""
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
        """For each position, the part's scores of its candidates, [S, A, L, C], given the text's token before the
        position; and the candidates, int64 [S, A, L, C]. If the latter is None, all tokens are candidates, C = V."""

    @torch.no_grad()
    def blocks(self, lesson: Lesson, anchors: Tensor) -> Blocks:
        """The blocks of a lesson after roots at these positions. anchors: int64 [S, A]."""
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
        """The weighted mean of KL(p || q) plus the total variation, over the positions that enter the loss; q is the
        part's law, p the target's. The weight of a position is the chance that a draft gets as far as this position
        (``survival``)."""
        scores, candidates = self.scores(part, blocks)
        teacher = blocks.teacher if candidates is None else blocks.teacher.gather(-1, candidates)
        reached = survival(blocks)[blocks.counts]
        inputs = scores[blocks.counts], teacher[blocks.counts], reached
        return divergence_loss(*inputs, forward_kl) + divergence_loss(*inputs, total_variation)

    @torch.no_grad()
    def accepted(self, part, lesson: Lesson) -> Tensor:
        rows, length = lesson.tokens.shape
        lengths = torch.zeros_like(lesson.tokens)
        for anchors in torch.arange(length, device=lesson.tokens.device).split(AT_ONCE):
            blocks = self.blocks(lesson, anchors.expand(rows, -1))
            right = self.right(part, blocks)
            lengths[:, anchors] = run_lengths(right.flatten(0, 1)).unflatten(0, (rows, -1))
        return lengths

    def right(self, part, blocks: Blocks) -> Tensor:
        """For each position, whether the part's likeliest token, given the text's token before it, is the text's
        token, bool [S, A, L]."""
        scores, candidates = self.scores(part, blocks)
        best = scores.argmax(-1)
        if candidates is not None:
            best = candidates.gather(-1, best[..., None])[..., 0]
        return best == blocks.text


@torch.no_grad()
def survival(blocks: Blocks) -> Tensor:
    """For each position, [S, A, L], the chance at temperature 1 that the target accepts all tokens before it, if these
    are drawn from the block drafter's own law."""
    p, q = blocks.teacher.float().softmax(-1), blocks.logits.float().softmax(-1)
    kept = torch.minimum(p, q).sum(-1)
    return F.pad(kept[..., :-1].cumprod(-1), (1, 0), value=1.0)


@torch.no_grad()
def principal(rows: Tensor, rank: int) -> Tensor:
    """Initial codes of ``rank`` numbers for each token, [V, rank]: the principal components of the embeddings ``rows``
    [V, H], scaled to standard deviation 1. If rank exceeds H, the remaining numbers are random."""
    codes = torch.randn(len(rows), rank, device=rows.device)
    centred = (rows - rows.mean(0)).float()
    axes = torch.svd_lowrank(centred, q=min(rank, *rows.shape), niter=4)[2]
    along = centred @ axes
    codes[:, : along.shape[1]] = along / along.std(0).clamp(min=1e-6)
    return codes
