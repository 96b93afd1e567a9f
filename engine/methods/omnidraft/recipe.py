"""Trains OmniDraft's draft model: a small model on a second tokenizer, taught by a target with another vocabulary.

Ramakrishnan et al., OmniDraft (NeurIPS 2025). The tokenizer is trained on text that the target wrote. Each of the
target's tokens is spelled by a *run* of the draft model's tokens. The loss is the paper's hybrid. At the first token of
a run the target's distribution is distilled; for this, each of the target's tokens passes its probability to the first
token of its run. At the other tokens of a run the loss is their negative log-likelihood. The paper distils only the
probabilities of tokens that both vocabularies have; here tokens with longer runs are included as well.

Letters in shapes: S windows, T tokens of the target in each, L tokens of the draft model in each.
"""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import LlamaForCausalLM

from engine.core.options import choice, number, whole
from engine.methods.shared.spelling import Spelling, spelling_of
from engine.training import selftext
from engine.training.checkpoint import export_model
from engine.training.common import need_file
from engine.training.counted_acceptance import chain_lengths
from engine.training.divergences import DIVERGENCES, forward_kl
from engine.training.new_models import draft_config
from engine.training.student import Lesson, Student
from engine.training.tokenizer import train_tokenizer

CHAIN_LENGTH = 4  # tokens of the target in the chains that measure the accepted length


class Written(NamedTuple):
    """Windows of the target's tokens, spelled in the draft model's tokens. tokens: int64 [S, L], padded. first: [S, T],
    for each of the target's tokens, the index in ``tokens`` where its run begins. inside: bool [S, L], the tokens of
    runs except the first of each. counted: bool [S, L], those tokens of ``inside`` that enter the loss."""

    tokens: Tensor
    first: Tensor
    inside: Tensor
    counted: Tensor


class ForeignStudent(Student):
    key = "omnidraft"
    summary = "a draft with a tokenizer of its own, by hybrid distillation"
    options = (
        whole("vocabulary", 1024, 300, 65536).meaning("Tokens of the second tokenizer."),
        whole("layers", 2, 1, 8).meaning("Of the draft."),
        number("runs", 1.0, 0.0, 10.0).meaning("Weight of the likelihood inside of runs."),
        choice("divergence", "forward_kl", (*DIVERGENCES,)).meaning("At runs' beginnings."),
    )
    muon_rate, adam_rate = 0.02, 3e-3

    def __init__(self, target, settings, tokenizer, spelling: Spelling) -> None:
        super().__init__(target, settings)
        self.tokenizer, self.spelling = tokenizer, spelling

    @classmethod
    def of(cls, teacher, settings):
        text = selftext.load(need_file(teacher.text_file, "text"))
        documents = (text.tokens[start:end].tolist() for start, end in pairwise(text.starts))
        texts = (
            teacher.tokenizer.decode(document, skip_special_tokens=True) for document in documents
        )
        own = train_tokenizer(texts, settings["vocabulary"])
        rows = teacher.module.get_output_embeddings().weight.shape[0]
        names = (teacher.folder.name, "the second tokenizer")
        spelling = spelling_of(teacher.tokenizer, own, (rows, len(own)), names)
        return cls(teacher.module, settings, own, spelling)

    def start(self) -> nn.Module:
        end = self.tokenizer.eos_token_id
        return LlamaForCausalLM(draft_config(len(self.tokenizer), end, self.settings["layers"]))

    def written(self, tokens: Tensor, counted: Tensor) -> Written:
        """Spell windows [S, T] of the target's tokens in the draft model's tokens. counted: bool [S, T], which of the
        target's tokens enter the loss."""
        runs = [[self.spelling.runs[token] or (0,) for token in row] for row in tokens.tolist()]
        flat = [[token for run in row for token in run] for row in runs]
        sizes = torch.tensor([[len(run) for run in row] for row in runs])
        first = sizes.cumsum(1) - sizes
        width = max(map(len, flat))
        padded = torch.tensor([row + [0] * (width - len(row)) for row in flat])
        inside = torch.arange(width) < sizes.sum(1, keepdim=True)
        inside.scatter_(1, first, False)
        owner = torch.zeros_like(padded).scatter_(1, first, 1).cumsum(1) - 1
        text = Written(padded, first, inside, counted.cpu().gather(1, owner) & inside)
        return Written(*(field.to(tokens.device) for field in text))

    def loss(self, part: nn.Module, lesson: Lesson) -> Tensor:
        text = self.written(lesson.tokens, lesson.counted)
        logits = part(input_ids=text.tokens, use_cache=False).logits.float()
        log_q, log_p = self._at_beginnings(logits, lesson, text)
        boundaries = DIVERGENCES[self.settings["divergence"]](log_q, log_p)
        inner = F.cross_entropy(
            logits[:, :-1].flatten(0, 1), text.tokens[:, 1:].flatten(), reduction="none"
        )
        likelihood = (inner * text.counted[:, 1:].flatten()).sum() * self.settings["runs"]
        return (boundaries.sum() + likelihood) / max(1, len(boundaries))

    def _at_beginnings(
        self, logits: Tensor, lesson: Lesson, text: Written
    ) -> tuple[Tensor, Tensor]:
        """Return log q and log p, [N, Vd] each, at the first token of a run, over the draft model's Vd tokens. N is the
        number of the target's tokens that enter the loss."""
        keep = lesson.counted[:, 1:]
        rows = (text.first[:, 1:] - 1)[..., None].expand(-1, -1, logits.shape[-1])
        log_q = F.log_softmax(logits.gather(1, rows)[keep], -1)
        p = lesson.logits[:, :-1][keep].float().softmax(-1)
        carried = self.spelling.first_law(p, logits.shape[-1])
        return log_q, carried.clamp(min=1e-12).log()

    @torch.no_grad()
    def accepted(self, part: nn.Module, lesson: Lesson) -> Tensor:
        """Return the accepted lengths of greedy chains; a token of the target is right when all tokens of its run are
        right."""
        text = self.written(lesson.tokens, lesson.counted)
        best = part(input_ids=text.tokens, use_cache=False).logits[:, :-1].argmax(-1)
        # the number of wrong tokens up to each token
        wrong = F.pad((best != text.tokens[:, 1:]).long(), (1, 0)).cumsum(1)
        ends = torch.cat([text.first[:, 1:] - 1, _last(text)], 1)
        missed = wrong.gather(1, ends)
        return chain_lengths(missed[:, 1:] == missed[:, :-1], CHAIN_LENGTH)

    @torch.no_grad()
    def measured(self, part: nn.Module, lessons: Iterable[Lesson]) -> dict:
        """Return measurements of the draft model, by name. Among them are the probability that the target keeps the
        first token of a run at temperature 1, and the number of draft tokens per token of the target."""
        kept, distance, read, written = [], [], 0, 0
        for lesson in lessons:
            text = self.written(lesson.tokens, lesson.counted)
            logits = part(input_ids=text.tokens, use_cache=False).logits.float()
            log_q, log_p = self._at_beginnings(logits, lesson, text)
            kept.append(torch.minimum(log_q, log_p).exp().sum(-1))
            distance.append(forward_kl(log_q, log_p))
            read, written = read + text.tokens.shape[1], written + lesson.tokens.shape[1]
        return {
            "first_kept_at_temperature_1": round(float(torch.cat(kept).mean()), 4),
            "forward_kl": round(float(torch.cat(distance).mean()), 4),
            "draft_tokens_per_token": round(read / written, 3),
            "one_to_one": len(self.spelling.same),
        }

    def report(self, figures: Mapping) -> str:
        return "\n".join(f"{name:>28} {value}" for name, value in figures.items())

    def save(self, part: nn.Module, folder: Path, about: Mapping) -> None:
        export_model(part, folder, self.tokenizer, about)


def _last(text: Written) -> Tensor:
    """Return the index [S, 1] of each window's last token that is not padding."""
    places = torch.arange(text.tokens.shape[1], device=text.tokens.device)
    real = text.inside.scatter(1, text.first, True)
    return (places * real).amax(1, keepdim=True)


STUDENT = ForeignStudent
