"""Trains the diffusion language model of DEER in two stages, both on the target's distributions.

Cheng et al., "DEER: Draft with Diffusion, Verify with Autoregressive Models" (2025). Stage one, continuation: the
target's text is cut at random, a separator follows the cut, and a random share of the tokens after it is masked. The
model learns the masked tokens, and each block is weighted by 1 / share, as in masked diffusion. Stage two, the
positions right after the cut: the whole block is masked, as in a draft, and the weight of the loss falls exponentially
with the distance from the cut. The paper starts from a pre-trained diffusion model. Here the layers and embeddings
start as copies of the target's.

Letters in shapes: S windows, T tokens of a window, A blocks, B masks of a block, V vocabulary.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.core.options import number, whole
from engine.methods.deer.part import DiffusionLM, DiffusionLMConfig
from engine.training.counted_acceptance import run_lengths
from engine.training.diffusion import random_anchors
from engine.training.distill import divergence_loss
from engine.training.new_models import attention_shape
from engine.training.student import Lesson, Student

ROWS = 192  # rows of all blocks of one window together
REFINED_FROM = 5 / 8
"""The second stage begins once this share of the training is done, at the next measurement of the model in training."""
AT_ONCE = 32  # blocks of a text that are measured in one pass


class DeerStudent(Student):
    key = "deer"
    summary = "a diffusion language model that reads text and fills long blocks"
    options = (
        whole("layers", 4, 1, 64).meaning("Layers, copied from the target's first and last ones."),
        whole("block", 16, 2, 63).meaning("Masks of a block."),
        number("alpha", 1.06, 1.0, 4.0).meaning(
            "Stage two: how many times each place weighs what the next one weighs (the paper: 1.01, over "
            "96 places)."
        ),
    )

    def __init__(self, target, settings) -> None:
        super().__init__(target, settings)
        self.refining = False

    def reach(self, done: float) -> None:
        self.refining = done >= REFINED_FROM

    def start(self) -> DiffusionLM:
        config, settings = self.config, self.settings
        model = DiffusionLM(
            DiffusionLMConfig(
                vocab_size=config.vocab_size,
                hidden_size=config.hidden_size,
                intermediate_size=getattr(config, "intermediate_size", 4 * config.hidden_size),
                num_hidden_layers=settings["layers"],
                block_size=settings["block"],
                max_position_embeddings=config.max_position_embeddings,
                **attention_shape(config),
            )
        )
        for weight in model.parameters():
            if weight.dim() == 2:
                nn.init.normal_(weight, std=0.02)
        self._copy(model)
        return model

    @torch.no_grad()
    def _copy(self, made: DiffusionLM) -> None:
        """Copy all weights that have the same shape in the target: embeddings, layers from both ends of the target's
        stack, final norm."""
        rows = self.target.get_input_embeddings().weight
        made.embed_tokens.weight[: len(rows)].copy_(rows)
        made.embed_tokens.weight[len(rows) :].copy_(rows.mean(0))
        made.embed_tokens.weight[len(rows) :] += 0.02 * torch.randn_like(rows[:2])
        stack = getattr(self.target.base_model, "layers", [])
        first = (len(made.layers) + 1) // 2
        for place, layer in enumerate(made.layers):
            source = place if place < first else len(stack) - len(made.layers) + place
            if 0 <= source < len(stack):
                copy_matching(layer, stack[source])
        norm = getattr(self.target.base_model, "norm", None)
        if norm is not None:
            copy_matching(made.norm, norm)

    def loss(self, part: DiffusionLM, lesson: Lesson) -> Tensor:
        size = part.config.block_size
        anchors = random_anchors(*lesson.tokens.shape, ROWS // size, size + 1, lesson.index)
        anchors = anchors.to(lesson.tokens.device)
        blocks, weights = self.lessons(part.config, lesson, anchors)
        places = anchors[..., None] + torch.arange(1, size + 1, device=anchors.device)
        rows = torch.arange(len(anchors), device=anchors.device)[:, None, None].expand_as(places)
        keep = weights.flatten() > 0
        student = part(lesson.tokens, anchors, blocks).flatten(0, 2)[keep]
        teacher = lesson.logits[rows, places - 1].flatten(0, 2)[keep]
        return divergence_loss(student, teacher, weights.flatten()[keep])

    def lessons(
        self, config: DiffusionLMConfig, lesson: Lesson, anchors: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the tokens of the blocks after these anchors, int64 [S, A, B + 1], and the weight of each position in
        the loss, [S, A, B]. The weight is 0 where the token is not masked, or where the lesson excludes it from the
        loss."""
        size = config.block_size
        shape = (*anchors.shape, size)
        steps = torch.arange(1, size + 1, device=anchors.device)
        places = (anchors[..., None] + steps).flatten(1)
        text = lesson.tokens.gather(1, places).view(shape)
        counted = lesson.counted.gather(1, places).view(shape).float()
        if self.refining:
            masked = torch.ones(shape, dtype=torch.bool, device=anchors.device)
            weights = self.settings["alpha"] ** (1.0 - steps)
        else:
            noise = torch.Generator().manual_seed(lesson.index + 1)
            share = torch.rand(anchors.shape, generator=noise)[..., None].clamp(min=1 / size)
            masked = (torch.rand(shape, generator=noise) < share).to(anchors.device)
            weights = (1 / share).to(anchors.device)
        blocks = torch.where(masked, config.mask, text)
        separator = torch.full((*anchors.shape, 1), config.separator, device=anchors.device)
        return torch.cat([separator, blocks], -1), weights * masked * counted

    @torch.no_grad()
    def accepted(self, part: DiffusionLM, lesson: Lesson) -> Tensor:
        size, (texts, length) = part.config.block_size, lesson.tokens.shape
        empty = part.block(size, lesson.tokens.device)
        roots = torch.arange(length, device=lesson.tokens.device).expand(texts, -1)
        best = [
            part(lesson.tokens, anchors, empty.expand(*anchors.shape, -1)).argmax(-1)
            for anchors in roots.split(AT_ONCE, dim=1)
        ]
        truth = F.pad(lesson.tokens, (0, size), value=-1).unfold(1, size, 1)[:, 1:]
        right = torch.cat(best, 1) == truth
        return run_lengths(right.flatten(0, 1)).view(texts, length)


def copy_matching(mine: nn.Module, theirs: nn.Module) -> None:
    """Copy from ``theirs`` the weights that have the same name and shape in ``mine``."""
    weights = dict(theirs.named_parameters())
    for name, weight in mine.named_parameters():
        if name in weights and weights[name].shape == weight.shape:
            weight.copy_(weights[name])


STUDENT = DeerStudent
