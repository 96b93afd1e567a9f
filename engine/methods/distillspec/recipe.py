"""DistillSpec: a draft model learns the target's distributions on text that the draft model itself writes.

Zhou et al., DistillSpec: Improving Speculative Decoding via Knowledge Distillation (ICLR 2024). The paper's two choices
are options here. The first is the share of on-policy batches. In such a batch the draft model is given a prefix of each
training window and samples the rest; the target gives its distributions at the sampled tokens. The batches that are not
on-policy alternate between text that the target wrote and the corpora. The second choice is the divergence that is the
loss.
"""

import torch
from torch import Tensor, nn

from engine.core.options import choice, number
from engine.core.sampling import pick
from engine.training.distill import draft_loss
from engine.training.divergences import LOSSES, loss_named
from engine.training.student import Lesson, taught
from engine.training.students.draft_students import DraftStudent


class DistilledStudent(DraftStudent):
    key = "distillspec"
    summary = "a draft distilled on its own text, with the divergence of your choice"
    options = (
        choice("divergence", "forward_kl", LOSSES).meaning("The loss."),
        number("on_policy", 0.5, 0.0, 1.0).meaning("Share of batches that the draft writes."),
    )
    muon_rate, adam_rate = 0.005, 1e-3

    @property
    def logit_sets(self) -> int:
        return 2

    def loss(self, part: nn.Module, lesson: Lesson) -> Tensor:
        noise = torch.Generator().manual_seed(lesson.index)
        if torch.rand((), generator=noise) < self.settings["on_policy"]:
            lesson = self.own_lesson(part, lesson, noise)
        divergence = loss_named(self.settings["divergence"], lesson.index)
        return draft_loss(part, lesson, lesson.tokens, lesson.counted, divergence)

    def own_lesson(self, part: nn.Module, lesson: Lesson, noise: torch.Generator) -> Lesson:
        """Return a lesson in which the draft model has sampled the windows' tokens after a prefix. The prefix has an
        eighth to a half of a window's tokens, and only the sampled tokens enter the loss."""
        length = lesson.tokens.shape[1]
        prefix = int(torch.randint(length // 8, length // 2 + 1, (1,), generator=noise))
        tokens = continued(part, lesson.tokens[:, :prefix], length, noise)
        written = (torch.arange(length) >= prefix).expand(tokens.shape)
        return taught(self.target, self.feature_layers, tokens, written, lesson.index)


@torch.no_grad()
def continued(draft: nn.Module, prefixes: Tensor, length: int, noise: torch.Generator) -> Tensor:
    """Let a draft model in training continue texts by draws at temperature 1, as it will when it drafts.

    prefixes: int64 [S, P], the first P tokens of S texts; P < length. Returns int64 [S, length]: the prefixes and their
    continuations.
    """
    text, cache = prefixes, None
    while text.shape[1] < length:
        unread = text if cache is None else text[:, -1:]
        output = draft(input_ids=unread, past_key_values=cache, use_cache=True)
        cache = output.past_key_values
        q = output.logits[:, -1].float().softmax(-1)
        uniform = torch.rand(len(q), generator=noise, dtype=torch.float64).to(q.device)
        text = torch.cat([text, pick(q, uniform)[:, None]], 1)
    return text


STUDENT = DistilledStudent
