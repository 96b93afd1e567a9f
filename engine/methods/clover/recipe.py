"""Clover: a recurrent cell after an augmenting block learns the target's distributions.

At the start the cell repeats the target's state: the augmenting block adds nothing, the attention decoders add almost
nothing, and the target's head reads from it the token before the wanted one.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.core.options import Option
from engine.errors import UserError
from engine.methods.clover.part import USUAL_HEADS, AttentionDecoder, CloverHeads
from engine.model.layers import final_norm
from engine.training.student import Lesson
from engine.training.students.head_students import HeadsStudent

SMALL = 0.01


class CloverStudent(HeadsStudent):
    key = "clover"
    summary = "a recurrent cell that passes its state from drafted token to drafted token"
    options = (
        Option("heads", "int", USUAL_HEADS, "Tokens it learns to draft.", 1, 16),
        Option("layers", "int", 1, "Layers of the augmenting block.", 1, 8),
    )

    @torch.no_grad()
    def start(self) -> CloverHeads:
        try:
            made = CloverHeads(self.config, self.settings["layers"], self.settings["heads"])
        except ValueError as error:
            raise UserError(f"Clover does not fit this target: {error}.") from None
        width = self.config.hidden_size
        for name, weight in made.augmenting.named_parameters():
            if "o_proj" in name or "down_proj" in name:
                weight.zero_()  # what attention and MLP add to the rows
        for decoder in (made.extract, made.decoder):
            _begin(decoder, width)
        for linear in (made.first, made.later):
            linear.weight.uniform_(0, SMALL)
            linear.weight[:, :width] += torch.eye(width)
            linear.bias.zero_()
        final = getattr(final_norm(self.target), "weight", torch.ones(1))
        made.head_norm.weight.fill_(final.square().mean().sqrt())
        return made

    def states(self, part: CloverHeads, lesson: Lesson) -> Tensor:
        return part.states(lesson.features, self._embedded(lesson.tokens.roll(-1, 1)))

    def logits(self, part: CloverHeads, head: int, states: Tensor, lesson: Lesson) -> Tensor:
        hidden, embedding = states, None
        for before in range(head):
            embedding = self._embedded(lesson.tokens[:, 2 + before :][:, : hidden.shape[1]])
            hidden = part.next(hidden, embedding)
        return self.target.get_output_embeddings()(part.spoken(hidden, embedding))

    def _embedded(self, tokens: Tensor) -> Tensor:
        return F.embedding(tokens, self.target.get_output_embeddings().weight)


def _begin(decoder: AttentionDecoder, width: int) -> None:
    for linear in (decoder.q, decoder.k, decoder.v):
        linear.weight.uniform_(0, SMALL)
        linear.bias.zero_()
    for linear in (decoder.q, decoder.k):
        linear.weight += torch.eye(width)


STUDENT = CloverStudent
