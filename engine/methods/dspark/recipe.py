"""Trains DSpark's heads for any block drafter, which stays unchanged.

The Markov head learns the target's laws at the positions of random blocks; the token before each position is the text's
own. The confidence head learns how likely the token at a position is to be kept: at temperature 1 in every second batch
(the sum of min(p, q)), at temperature 0 in the others. Then each position gets a temperature that calibrates its
confidence. The temperatures are fitted on greedy held-out texts, one position after the other, so that the product of
the confidences up to a position equals the share of drafts that are kept up to it (sequential temperature scaling).
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
        heads = SparkHeads(hidden, tokens, tokens, rank, hidden + rank)
        heads.embed_before.weight.data = principal(self.target.get_input_embeddings().weight, rank)
        heads.embed_after.weight.data.zero_()  # the backbone alone, at first
        heads.confidence.weight.data.zero_()
        heads.denoiser_digest = self.digest
        return heads

    def scores(self, part: SparkHeads, blocks: Blocks) -> tuple[Tensor, None]:
        return blocks.logits + part.bias(blocks.befores), None

    def loss(self, part: SparkHeads, lesson: Lesson) -> Tensor:
        self._greedy = lesson.index % 2 == 1
        return super().loss(part, lesson)

    def blocks_loss(self, part: SparkHeads, blocks: Blocks) -> Tensor:
        markov_loss = super().blocks_loss(part, blocks)
        with torch.no_grad():
            q, p = self.scores(part, blocks)[0], blocks.teacher
            if self._greedy:
                kept = (q.argmax(-1) == p.argmax(-1)).float()
            else:
                kept = torch.minimum(p.float().softmax(-1), q.float().softmax(-1)).sum(-1)
            reached = survival(blocks) * blocks.counts
        odds = part.odds(blocks.hidden, blocks.befores)
        doubt = F.binary_cross_entropy_with_logits(odds, kept, reached, reduction="sum")
        return markov_loss + doubt / reached.sum().clamp(min=1e-6)

    @torch.no_grad()
    def measured(self, part: SparkHeads, lessons: Iterable[Lesson]) -> dict:
        """Fit the temperatures. Returns them together with the calibration error before and after the fit. For each
        position, the product of the confidences up to the position is compared with the share of drafts that are kept
        up to it; the error is the largest difference."""
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
            TEMPERATURES: [round(temperature, 4) for temperature in part.temperatures],
            "calibration_error": {"before": before, "after": after},
        }


def fitted(odds: Tensor, kept: Tensor) -> list[float]:
    """Return the temperature of each position. They are fitted from the first position to the last: each is the value
    in GRID with which the product of the confidences up to the position best predicts (in log-loss) whether all tokens
    up to the position are kept.

    odds: the confidence head's log-odds for N blocks of L positions, [N, L]. kept: [N, L], 1 where all tokens up to the
    position are kept, otherwise 0.
    """
    temperatures, survived = [], torch.ones(len(odds))
    for place in range(odds.shape[1]):
        chances = survived[:, None] * (odds[:, place, None] / GRID).sigmoid()
        true = kept[:, place, None].expand_as(chances)
        losses = F.binary_cross_entropy(chances.clamp(1e-6, 1 - 1e-6), true, reduction="none")
        best = int(losses.mean(0).argmin())
        temperatures.append(float(GRID[best]))
        survived = chances[:, best]
    return temperatures


def _error(chances: Tensor, kept: Tensor) -> float:
    return round(float((chances.cumprod(-1).mean(0) - kept.mean(0)).abs().max()), 4)


STUDENT = SparkStudent
