"""Trains the filter of Learn2PD, which predicts for each place of a block whether the diffusion drafter's token there
is right.

The paper's recipe: in each pass over a block, an oracle chooses which places are filled. It knows which tokens are
right, and chooses exactly the places that have a right one (Extremely Greedy Parallel). The filter learns the oracle's
choice from the confidences alone, by binary cross-entropy. In the paper a token is right if it equals the diffusion
model's own final token. Here it is right if it equals the token of the target's text, because a drafted token is kept
where it equals the target's token.

Letters in shapes: S windows, T tokens of a window, A blocks of a window, L places of a block after its root.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.core.options import whole
from engine.methods.learn2pd.drafter import LearnedParallelDrafter
from engine.methods.learn2pd.part import UnmaskingFilter, reading
from engine.methods.shared.dflash_model import DFlashModel
from engine.parts.digest import digest_of
from engine.training.counted_acceptance import run_lengths
from engine.training.diffusion import random_anchors
from engine.training.student import Lesson, Student

BLOCKS = 24  # blocks per window of a lesson
DRAFTED = {option.name: option.default for option in LearnedParallelDrafter.options}
"""The drafter's default options, with which the accepted length is measured."""


class Pass(NamedTuple):
    """One pass over blocks; all fields are [S, A, L]. values: the confidences. tokens: at masked places the likeliest
    tokens, at filled places the filled ones. filled: which places were filled before the pass."""

    values: Tensor
    tokens: Tensor
    filled: Tensor


Choose = Callable[[Pass], Tensor]
"""A function that returns, for a pass, which places it takes to be right, bool [S, A, L]."""


class FilterStudent(Student):
    key = "learn2pd"
    summary = "the filter of `learn2pd`, from the diffusion drafter's confidences"
    options = (
        whole("hidden", 0, 0, 1024).meaning("Width of the filter (0: the places of a block)."),
        whole("passes", 3, 1, 16).meaning("Denoising passes that are learned from."),
    )
    muon_rate = 0.1
    adam_rate = 3e-2

    def __init__(self, target, settings, denoiser: DFlashModel, digest: str | None) -> None:
        super().__init__(target, settings)
        self.denoiser, self.digest = denoiser, digest
        self.places = denoiser.config.block_size - 1

    @classmethod
    def of(cls, teacher, settings):
        return cls(teacher.module, settings, teacher.denoiser, digest_of(teacher.denoiser_folder))

    @property
    def feature_layers(self):
        return tuple(layer + 1 for layer in self.denoiser.config.target_layer_ids)

    def start(self) -> UnmaskingFilter:
        part = UnmaskingFilter(self.places, self.settings["hidden"] or self.places)
        part.denoiser_digest = self.digest
        return part

    def loss(self, part: UnmaskingFilter, lesson: Lesson) -> Tensor:
        total, count = torch.zeros((), device=lesson.features.device), 0
        for odds, right, counts in self.graded(part, lesson):
            total = total + F.binary_cross_entropy_with_logits(
                odds[counts], right[counts].float(), reduction="sum"
            )
            count += int(counts.sum())
        return total / max(1, count)

    def graded(
        self, part: UnmaskingFilter, lesson: Lesson
    ) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Yield three tensors [S, A, L] for each pass that the oracle steers over random blocks: the filter's log-odds,
        which places are right, and which places enter the loss. A place enters the loss if it is still masked and if
        its token in the text enters the loss."""
        size = self.denoiser.config.block_size
        anchors = random_anchors(*lesson.tokens.shape, BLOCKS, size, lesson.index)
        anchors = anchors.to(lesson.tokens.device)
        text, counted = self.behind(anchors, lesson.tokens), self.behind(anchors, lesson.counted)
        for seen in self.passes(lesson, anchors, lambda canvas: canvas.tokens == text):
            odds = part(reading(seen.values, seen.filled))
            yield odds, seen.tokens == text, counted & ~seen.filled

    @torch.no_grad()
    def passes(self, lesson: Lesson, anchors: Tensor, choose: Choose) -> Iterator[Pass]:
        """Yield the denoising passes over the blocks after these roots. anchors: int64 [S, A], the positions of the
        roots. After each pass, every masked place is filled for which ``choose`` returns True; in a block without such
        a place, the masked place with the highest confidence is filled."""
        config, embedding = self.denoiser.config, self.target.get_input_embeddings()
        head = self.target.get_output_embeddings()
        shape = (*anchors.shape, self.places)
        tokens = torch.full(shape, config.mask_token_id, device=anchors.device)
        filled = torch.zeros(shape, dtype=torch.bool, device=anchors.device)
        roots = lesson.tokens.gather(1, anchors)[..., None]
        for _ in range(self.settings["passes"]):
            block = torch.cat([roots, tokens], -1)
            hidden = self.denoiser(lesson.features, embedding(block), anchors)[:, :, 1:]
            best = head(hidden).float().softmax(-1).max(-1)
            seen = Pass(best.values, torch.where(filled, tokens, best.indices), filled)
            yield seen
            now = choose(seen) & ~filled
            open_values = best.values.masked_fill(filled, -1.0)
            surest = F.one_hot(open_values.argmax(-1), self.places).bool() & ~filled
            now = torch.where(now.any(-1, keepdim=True), now, surest)
            tokens, filled = torch.where(now, seen.tokens, tokens), filled | now

    def behind(self, anchors: Tensor, rows: Tensor) -> Tensor:
        """Return the L entries of ``rows`` [S, T] after each root, as a tensor [S, A, L]. Entries beyond the end of the
        text are -1 or False."""
        padded = F.pad(rows, (0, self.places), value=False if rows.dtype == torch.bool else -1)
        places = anchors[..., None] + torch.arange(1, self.places + 1, device=anchors.device)
        return padded.gather(1, places.flatten(1)).view(places.shape)

    @torch.no_grad()
    def accepted(self, part: UnmaskingFilter, lesson: Lesson) -> Tensor:
        """Return, for each token as the root, how many drafted tokens are right before the first wrong one, int [S, T].
        The blocks are drafted with the drafter's default threshold and with as many passes as in training; the last
        pass fills all remaining places."""

        def choose(seen: Pass) -> Tensor:
            return part(reading(seen.values, seen.filled)).sigmoid() >= DRAFTED["threshold"]

        size, length = lesson.tokens.shape
        anchors = torch.arange(length, device=lesson.tokens.device).expand(size, -1)
        *_, last = self.passes(lesson, anchors, choose)
        right = last.tokens == self.behind(anchors, lesson.tokens)
        return run_lengths(right.flatten(0, 1)).view(size, length)

    @torch.no_grad()
    def measured(self, part: UnmaskingFilter, lessons: Iterable[Lesson]) -> dict:
        """Return three numbers that say how well the filter recognises right tokens at the drafter's default threshold.
        right: the share of right places. precision: among the places that the filter accepts, the share of right ones.
        recall: among the right places, the share that it accepts."""
        places = right_ones = passed = passed_right = 0
        for lesson in lessons:
            for odds, right, counts in self.graded(part, lesson):
                said = odds.sigmoid() >= DRAFTED["threshold"]
                places += int(counts.sum())
                right_ones += int((right & counts).sum())
                passed += int((said & counts).sum())
                passed_right += int((said & right & counts).sum())
        return {
            "right": round(right_ones / max(1, places), 4),
            "precision": round(passed_right / max(1, passed), 4),
            "recall": round(passed_right / max(1, right_ones), 4),
        }


STUDENT = FilterStudent
