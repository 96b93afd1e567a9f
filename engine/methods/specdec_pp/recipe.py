"""Trains SpecDec++'s acceptance head: how likely the draft model's own tokens are to be accepted at temperature 1, from
the draft model's hidden states.

The paper's recipe: after every token of a text, the draft model draws a token of its own. Its label is the chance
min(1, p/q) with which the target would accept it. Then the draft model is run over a mixed text, in which most tokens
are its own and a share are the original ones, so that prefixes look like those in use. Only the draft model's own
tokens enter the loss. Rejected tokens are rare, so they have a larger weight (weighted binary cross-entropy). Not in
the paper: in a share of the texts the draft model takes its likeliest tokens, and the label says whether they are also
the target's likeliest, as in greedy decoding.
"""

from collections.abc import Iterable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import PreTrainedModel

from engine.core.options import number, whole
from engine.core.sampling import pick
from engine.methods.specdec_pp.calibration_curve import CalibrationCurve
from engine.methods.specdec_pp.part import AcceptanceHead
from engine.parts.digest import digest_of
from engine.training.student import Lesson, Student

THRESHOLD, LONGEST = 0.7, 16  # options of the drafts that measure the accepted length


class Graded(NamedTuple):
    """A head's predictions for the tokens of mixed texts, and the truth; all fields are [S, T]: S texts of T tokens.
    odds: the head's log-odds that a token is accepted. chance: the true chance. counts: 1 if the token enters the loss,
    else 0."""

    odds: Tensor
    chance: Tensor
    counts: Tensor


class AcceptanceStudent(Student):
    key = "specdec_pp"
    summary = "an acceptance head on the draft's last state"
    options = (
        whole("layers", 3, 0, 8).meaning("Residual blocks."),
        number("rejected_weight", 6.0, 0.1, 100).meaning(
            "Weight of a refused token; a kept one weighs 1."
        ),
        number("mixing", 0.15, 0.0, 0.9).meaning("Share of the text's own tokens."),
        number("greedy", 0.5, 0.0, 1.0).meaning(
            "Share of the texts in which the draft takes its favourites, which are kept if they are the target's."
        ),
    )
    muon_rate = 0.005

    def __init__(self, target, settings, draft: PreTrainedModel, draft_digest: str | None) -> None:
        super().__init__(target, settings)
        self.draft, self.draft_digest = draft, draft_digest

    @classmethod
    def of(cls, teacher, settings):
        return cls(teacher.module, settings, teacher.draft, digest_of(teacher.draft_folder))

    @property
    def logit_sets(self) -> int:
        return 3  # two sets of the draft's logits, because it reads twice, and q

    def start(self) -> AcceptanceHead:
        width = self.draft.config.get_text_config(decoder=True).hidden_size
        head = AcceptanceHead(self.settings["layers"], width)
        head.rejected_weight = self.settings["rejected_weight"]
        head.draft_digest = self.draft_digest
        return head

    def loss(self, part: AcceptanceHead, lesson: Lesson) -> Tensor:
        odds, chance, counts = self.graded(part, lesson, self._of_favourites(lesson.index))
        weight = self.settings["rejected_weight"]
        refused = weight * (1 - chance) * counts
        kept = chance * counts
        total = refused * F.softplus(odds) + kept * F.softplus(-odds)
        return total.sum() / (refused.sum() + kept.sum()).clamp(min=1e-6)

    def graded(self, part: AcceptanceHead, lesson: Lesson, favourites: bool = False) -> Graded:
        """Return the head's predictions with their labels. favourites: whether the draft model takes its likeliest
        tokens instead of drawing."""
        mixed, chance, counts = self._mixed(lesson, favourites)
        return Graded(part(self._read(mixed)[1]), chance, counts)

    @torch.no_grad()
    def _mixed(self, lesson: Lesson, favourites: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        """Return three tensors [S, T]: the mixed text, each token's chance of being accepted, and whether the token
        enters the loss. The first token of a text does not, because it was not drafted. favourites: whether the draft
        model takes its likeliest tokens instead of drawing."""
        noise = torch.Generator().manual_seed(lesson.index)
        q, _ = self._read(lesson.tokens)
        q, p = q[:, :-1].float().softmax(-1), lesson.logits[:, :-1].float().softmax(-1)
        size = min(p.shape[-1], q.shape[-1])  # the same vocabulary, padded to different sizes
        uniform = torch.rand(q.shape[:-1], generator=noise, dtype=torch.float64).to(q.device)
        if favourites:
            drawn = q[..., :size].argmax(-1, keepdim=True)
            ratio = (p[..., :size].argmax(-1, keepdim=True) == drawn).float()
        else:
            drawn = pick(q[..., :size], uniform)[..., None]
            ratio = p.gather(-1, drawn) / q.gather(-1, drawn).clamp(min=1e-12)
        own = torch.rand(drawn.shape[:-1], generator=noise).to(q.device) < self.settings["mixing"]
        following = torch.where(own, lesson.tokens[:, 1:], drawn[..., 0])
        chance = F.pad(ratio[..., 0].clamp(max=1.0), (1, 0))
        counts = F.pad(lesson.counted[:, 1:] & ~own, (1, 0))
        return torch.cat([lesson.tokens[:, :1], following], -1), chance, counts

    def _of_favourites(self, index: int) -> bool:
        """Return whether the lesson with this index is one of those on greedy decoding, which are spread evenly over
        all lessons."""
        share = self.settings["greedy"]
        return int((index + 1) * share) > int(index * share)

    @torch.no_grad()
    def _read(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Return the draft model's logits [S, T, V] and last hidden states [S, T, H] on these tokens [S, T]."""
        output = self.draft(input_ids=tokens, use_cache=False, output_hidden_states=True)
        return output.logits, output.hidden_states[-1]

    def accepted(self, part: AcceptanceHead, lesson: Lesson) -> Tensor:
        """Return, for each position of the text, how many tokens of a greedy chain from there would be accepted. The
        chain ends by the same test as the drafter's. As long as its tokens are right, they are the tokens of the text,
        so one pass of the draft model over the text gives all predictions."""
        logits, states = self._read(lesson.tokens)
        following = F.pad(lesson.tokens[:, 1:], (0, 1), value=-1)
        right = logits.argmax(-1) == following
        chance = F.pad(part(states).sigmoid()[:, 1:], (0, 1))  # for the token after this one
        count, alive = torch.zeros_like(lesson.tokens), torch.ones_like(right)
        all_kept = torch.ones_like(chance)
        for place in range(LONGEST):
            alive = alive & _later(right, place)
            count += alive
            all_kept = all_kept * _later(chance, place)
            alive = alive & (1 - all_kept <= THRESHOLD)
        return count

    def measured(self, part: AcceptanceHead, lessons: Iterable[Lesson]) -> dict:
        """Return measurements of the head on tokens that the draft model draws on these texts: the share of the tokens
        that is accepted; and, for each tenth of the predicted chances, the number of predictions in it and the share of
        these tokens that is accepted."""
        curve, mean = CalibrationCurve(), []
        for lesson in lessons:
            odds, chance, counts = self.graded(part, lesson)
            places = counts.bool()
            predicted, true = odds.sigmoid()[places].tolist(), chance[places].tolist()
            curve.see(zip(predicted, true, strict=True))
            mean += true
        return {
            "kept_at_temperature_1": round(sum(mean) / max(1, len(mean)), 4),
            "calibration": [None if share is None else round(share, 3) for share in curve.shares()],
            "calibration_counts": curve.counts,
        }


def _later(rows: Tensor, places: int) -> Tensor:
    """Return rows [S, T] in which each entry is the one that stood ``places`` positions later; False or 0 where the
    text has ended."""
    return F.pad(rows[:, places:], (0, min(places, rows.shape[1])))


STUDENT = AcceptanceStudent
