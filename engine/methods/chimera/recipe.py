"""Trains Chimera's draft model: its states learn to equal the target's, and its readouts learn the target's
distributions.

The training unrolls as many steps as there are readouts. A later step sees, in place of a token's true state, the state
that was drafted for the token.

Letters in shapes: S windows, T tokens of a window, H hidden size, K readouts.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.core.options import whole
from engine.methods.chimera.part import GRAM, ChimeraHeads
from engine.training.student import Lesson
from engine.training.students.head_students import DECAY, HeadsStudent


class ChimeraStudent(HeadsStudent):
    key = "chimera"
    summary = "an encoder of trigrams and one of the target's states, with a readout per token"
    options = (whole("heads", 4, 1, 16).meaning("Readouts: tokens it learns to draft."),)

    def start(self) -> ChimeraHeads:
        return ChimeraHeads.beginning(self.target, **self.settings)

    def states(self, part: ChimeraHeads, lesson: Lesson) -> Tensor:
        """Return [S, T, (1 + K) * H]: row i holds the target's state i, and the states drafted for the tokens i + 1, i
        + 2 ... i + K."""
        true, encoder = lesson.features, part.encoder
        length = lesson.tokens.shape[1]
        rows = part.trigram(self._trigrams(lesson.tokens))
        places = torch.arange(length, device=true.device)
        keys, values = encoder.columns(true, places)
        mask = torch.ones(length, length, dtype=torch.bool, device=true.device).tril()
        line, parts = [], [true]
        for step in range(min(len(part), length - 1)):
            count = (
                length - 1 - step
            )  # row i drafts the state of the token i + 1 + step, and sees the true states up to i
            line = [(k[..., :count, :], v[..., :count, :]) for k, v in line]
            text = keys[..., :count, :], values[..., :count, :]
            at = places[1 + step :]
            states = encoder(rows[:, 1 + step :], at, text, mask[:count, :count], line)
            line.append(encoder.columns(states, at))
            parts.append(F.pad(states, (0, 0, 0, length - count)))
        missing = len(part) + 1 - len(parts)
        return torch.cat([*parts, *[torch.zeros_like(true)] * missing], -1)

    def _trigrams(self, tokens: Tensor) -> Tensor:
        """Return the embeddings [S, T, 3, H] of the trigrams that end at each token. Where a trigram would begin before
        the text, the first token is repeated."""
        padded = torch.cat([tokens[:, :1]] * (GRAM - 1) + [tokens], 1)
        return self.target.get_input_embeddings()(padded.unfold(1, GRAM, 1))

    def logits(self, part: ChimeraHeads, head: int, states: Tensor, lesson: Lesson) -> Tensor:
        parts = states.chunk(1 + len(part), -1)
        return self.target.get_output_embeddings()(part.spoken(head, parts[0], parts[1 + head]))

    def states_loss(self, part: ChimeraHeads, states: Tensor, lesson: Lesson) -> Tensor:
        """Return the smooth L1 distance of drafted states from the true ones, the mean over the tokens that enter the
        loss, summed over the unrolled steps."""
        parts, losses = states.chunk(1 + len(part), -1), []
        for step, drafted in enumerate(parts[1:]):
            true, keep = parts[0][:, 1 + step :], lesson.counted[:, 1 + step :]
            near = F.smooth_l1_loss(drafted[:, : true.shape[1]], true, reduction="none").mean(-1)
            losses.append(DECAY**step * (near * keep).sum() / keep.sum().clamp(min=1))
        return sum(losses)


STUDENT = ChimeraStudent
