"""DSpark's heads for any block drafter, which stays as it is.

The Markov head learns the target's laws at the places of random blocks, after the text's own tokens; the confidence head
learns how likely the token of a place is to be kept: in every second batch at temperature 1 (the sum of min(p, q)), in the
others at temperature 0. Then the temperature of each place is fitted on greedy held-out texts, place after place, so that
the product of the confidences up to it is the share of drafts that are kept up to it (sequential temperature scaling).
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.core.options import whole
from engine.methods.dspark.part import TEMPERATURES, SparkHeads
from engine.training.student import Lesson
from engine.training.students.block_students import Blocks, BlockStudent, principal, survival

GRID = torch.logspace(-0.7, 0.9, 65)  # temperatures that are tried


class SparkStudent(BlockStudent):
    key = "dspark"
    summary = "the Markov and confidence heads of `dspark`, on the diffusion drafter"
    options = (whole("rank", 24, 1, 4096).meaning("Rank of the Markov head."),)

    def start(self) -> SparkHeads:
        sizes, rank = self.denoiser.config, self.settings["rank"]
        hidden, tokens = sizes.hidden_size, sizes.vocab_size
        made = SparkHeads(hidden, tokens, tokens, rank, hidden + rank)
        made.embed_before.weight.data = principal(self.target.get_input_embeddings().weight, rank)
        made.embed_after.weight.data.zero_()  # the backbone alone, at first
        made.confidence.weight.data.zero_()
        made.denoiser_digest = self.digest
        return made

    def scores(self, part: SparkHeads, blocks: Blocks) -> tuple[Tensor, None]:
        return blocks.logits + part.bias(blocks.befores), None

    def loss(self, part: SparkHeads, lesson: Lesson) -> Tensor:
        self._greedy = lesson.index % 2 == 1
        return super().loss(part, lesson)

    def blocks_loss(self, part: SparkHeads, blocks: Blocks) -> Tensor:
        told = super().blocks_loss(part, blocks)
        with torch.no_grad():
            q, p = self.scores(part, blocks)[0], blocks.teacher
            if self._greedy:
                kept = (q.argmax(-1) == p.argmax(-1)).float()
            else:
                kept = torch.minimum(p.float().softmax(-1), q.float().softmax(-1)).sum(-1)
            reached = survival(blocks) * blocks.counts
        odds = part.odds(blocks.hidden, blocks.befores)
        doubt = F.binary_cross_entropy_with_logits(odds, kept, reached, reduction="sum")
        return told + doubt / reached.sum().clamp(min=1e-6)

    @torch.no_grad()
    def measured(self, part: SparkHeads, lessons: Iterable[Lesson]) -> dict:
        """Fits the temperatures; the largest distance of a product of confidences from the share kept, before and after."""
        odds, kept = [], []
        for lesson in lessons:
            last = max(0, lesson.tokens.shape[1] - self.denoiser.config.block_size)
            roots = lesson.counted[0, :last].nonzero()[:, 0]
            if not len(roots):
                continue
            blocks = self.blocks(lesson, roots[None])
            odds.append(part.odds(blocks.hidden, blocks.befores)[0])
            kept.append(self.right(part, blocks)[0].cumprod(-1))
        if not odds:
            return {}
        odds, kept = torch.cat(odds), torch.cat(kept).float()
        before = _error(odds.sigmoid(), kept)
        part.temperatures = fitted(odds, kept)
        after = _error((odds / torch.tensor(part.temperatures)).sigmoid(), kept)
        return {
            TEMPERATURES: [round(one, 4) for one in part.temperatures],
            "calibration_error": {"before": before, "after": after},
        }


def fitted(odds: Tensor, kept: Tensor) -> list[float]:
    """The temperature of each place, one after another: that under which the product of the confidences up to it tells best
    (in log-loss) whether all up to it are kept. odds, kept: [N, L]; kept is 1 where all tokens up to a place are."""
    found, survived = [], torch.ones(len(odds))
    for place in range(odds.shape[1]):
        chances = survived[:, None] * (odds[:, place, None] / GRID).sigmoid()
        true = kept[:, place, None].expand_as(chances)
        losses = F.binary_cross_entropy(chances.clamp(1e-6, 1 - 1e-6), true, reduction="none")
        best = int(losses.mean(0).argmin())
        found.append(float(GRID[best]))
        survived = chances[:, best]
    return found


def _error(chances: Tensor, kept: Tensor) -> float:
    return round(float((chances.cumprod(-1).mean(0) - kept.mean(0)).abs().max()), 4)


STUDENT = SparkStudent
