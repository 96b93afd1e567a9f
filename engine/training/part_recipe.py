"""The recipe for all parts (models beside the target) that learn from a target's hidden states and laws; `students`
has a file for each kind of part.

    python -m engine.training KEY                  for the family's target -> <models>/parts/KEY
    python -m engine.training KEY --target DIR     for any other; `text --target DIR` writes the text to learn from

The memory and time that the training is expected to need are printed first. A table follows, with a line for each look
(measurement) during the training. A stopped training resumes where it was. The last line of the output is a JSON
object with the amount of text used and the acceptance on held-out texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from engine.core.options import resolve
from engine.errors import UserError
from engine.parts.digest import FIELD, digest_of
from engine.parts.files import halve
from engine.training.alignment import Text
from engine.training.checkpoint import write_whole
from engine.training.common import say
from engine.training.distill import MixedWindows
from engine.training.lessons import Lessons
from engine.training.loop import Budget, fit
from engine.training.new_models import parameter_count
from engine.training.outlay import check_memory, memory, told_time
from engine.training.part_figures import accepted_length, figures, kept_lengths
from engine.training.student import Lesson, Student
from engine.training.students import student_class
from engine.training.teacher import Teacher

ROWS = 6  # windows per batch
LEAST_LENGTH = 32
LOOKS = 8
"""How many measurements (looks) are made during the training, besides the one before it. Each is a row of the
table."""
COLUMNS = ("done", "tokens", "epochs", "loss", "accepted")
LOOKED_AT = 24
"""The most held-out texts on which a row of the table is measured. At the end of the training, the part is measured on
all texts."""
SPARED, FEW_LOOKS, FEW_TEXTS = 0.1, 4, 6
"""Only with ``--seconds``. SPARED: the share of the time that is reserved for the last measurement. FEW_LOOKS: the
number of looks. FEW_TEXTS: the number of texts on which a look is measured."""
WRITTEN_FROM = 0.6
"""Only with ``--seconds``: from this progress (0 to 1) on, the part is written at each look, so that a part exists
even if the command is killed."""


def train_part(args, key: str) -> None:
    cls = student_class(key)
    settings = resolve(f"recipe {key}", cls.options, _values(args.option))
    teacher = Teacher.of(args)
    student = cls.of(teacher, settings)
    longest = getattr(student.config, "max_position_embeddings", None) or args.length
    rows = ROWS if args.rows is None else args.rows
    if not LEAST_LENGTH <= args.length <= longest or not 1 <= rows <= (args.windows or rows):
        raise UserError(
            f"A batch has windows of {LEAST_LENGTH} to {longest} tokens (--length), one at least (--rows), and at most "
            "as many as are made (--windows)."
        )
    budget = Budget.of(args, minutes=args.seconds / 60 if args.seconds else 20)
    training = Training(teacher, student, args.name or key, budget, rows, args.length, args.seed)
    training.folder = args.output or training.folder
    training.eight_bits = args.eight_bits
    if args.seconds:
        training.until = args.began + (1 - SPARED) * args.seconds
    training.run()


def _values(options: list[str]) -> dict[str, str]:
    """Option -> value, from the NAME=VALUE options of the command line. Raises UserError for an option without "="."""
    for option in options:
        if "=" not in option:
            raise UserError(f"An option is written NAME=VALUE, not {option!r}.")
    return dict(option.split("=", 1) for option in options)


class Training:
    """The training of one part (a model that drafts for the target). rows: windows per batch. length: tokens per
    window."""

    def __init__(
        self,
        teacher: Teacher,
        student: Student,
        name: str,
        budget: Budget,
        rows: int,
        length: int,
        seed: int,
    ):
        self.teacher, self.student, self.name = teacher, student, name
        self.budget, self.rows = budget, rows
        self._windows = lambda mixture: teacher.windows(length, seed + 4, mixture, rows)
        self._texts: dict[tuple[int, int], MixedWindows] = {}
        student.prepare(torch.from_numpy(self.text.tokens[self.text.counted].astype("int64")))
        table = student.taught_tokens
        self._lessons = Lessons(teacher.module, student.feature_layers, table)
        self.folder = teacher.parts / name
        self.eight_bits, self.until = False, None
        torch.manual_seed(seed)
        self.part = student.start().to(teacher.module.device)
        self.checkpoint = teacher.work / f"part-{name}.pt"
        self.about = {
            "part": student.key,
            "settings": student.settings,
            "batch": [rows, length],
            "budget": [budget.minutes, budget.tokens],
            "seed": seed,
            "target": digest_of(teacher.folder),
        }
        self.looks: list[dict] = []

    def run(self) -> None:
        self._go_on()
        say(f"{self.name}: {parameter_count(self.part):,} parameters that learn")
        cost = memory(self.student, self.part, self.text.tokens[0].size * self.rows)
        say(check_memory(cost, self.teacher.module.device))
        say(told_time(self.budget, lambda: self.batch(0), self.teacher.epoch))
        self.part.zero_grad()
        every = self.teacher.probes()
        looks, probes = LOOKS, every[:LOOKED_AT]
        if self.until is not None:
            looks, probes = FEW_LOOKS, every[:FEW_TEXTS]
        self.budget = self.budget.part(1.0)  # the budget spent so far does not count
        self.budget.until = self.until
        for look in range(len(self.looks), looks + 1):
            losses: list[Tensor] = []
            self.student.reach(max(0, look - 1) / looks)
            fit(
                self.part,
                lambda index, losses=losses: self._noted(index, losses),
                self.budget,
                self.checkpoint,
                self.student.muon_rate,
                self.student.adam_rate,
                stop_at=look / looks,
                say=say,
            )
            if self.until is not None and look / looks >= WRITTEN_FROM:
                self._write({})
            self._look(look / looks, losses, probes)
        self._export(every)

    @property
    def text(self) -> MixedWindows:
        """The windows of text for the present progress of the training; a student may change the mixture of its
        text."""
        mixture = self.student.mixture(self.budget.progress())
        if mixture not in self._texts:
            self._texts[mixture] = self._windows(mixture)
        return self._texts[mixture]

    def batch(self, index: int) -> tuple[Tensor, int]:
        tokens, counted = self.text.batch(index, self.rows)
        if self.student.reads_target:
            cycle, rest = divmod(len(self.text.tokens), self.rows)
            again = None if rest else (id(self.text), index % cycle)
            lesson = self._lessons(tokens, counted, index, again)
        else:
            device = self.teacher.module.device
            lesson = Lesson(tokens.to(device), counted.to(device), None, None, index)
        return self.student.loss(self.part, lesson), tokens.numel()

    def lessons(self, probes: list[Text]) -> Iterator[Lesson]:
        """Yields the lesson of each of these texts of the target. The tokens of prompts do not enter the loss."""
        for start, text in probes:
            counted = torch.arange(len(text)) >= start
            yield self._lessons(torch.tensor([text]), counted[None])

    def _noted(self, index: int, losses: list[Tensor]) -> tuple[Tensor, int]:
        loss, tokens = self.batch(index)
        losses.append(loss.detach())
        return loss, tokens

    @property
    def _log(self) -> Path:
        return self.checkpoint.with_suffix(".json")

    def _go_on(self) -> None:
        """If a stopped training is resumed, load its table. Raises UserError if it had other settings or another
        target."""
        if not (self._log.exists() and self.checkpoint.exists()):
            return
        record = json.loads(self._log.read_text("utf-8"))
        if record["about"] != json.loads(json.dumps(self.about)):
            raise UserError(
                f"{self.checkpoint.name} was begun with other settings or another target; give this training a name "
                "of its own (--name), or remove that file."
            )
        self.looks = record["looks"]
        say(_line(COLUMNS))
        for look in self.looks:
            say(_row(look))

    def _look(self, done: float, losses: list[Tensor], probes: list[Text]) -> None:
        if not self.looks:
            say(_line(COLUMNS))
        look = {
            "done": done,
            "tokens": self.budget.spent_tokens,
            "epochs": self.budget.spent_tokens / self.teacher.epoch,
            "loss": torch.stack(losses).mean().item() if losses else None,
            "accepted": self._accepted(probes),
        }
        self.looks.append(look)
        say(_row(look))
        self._log.write_text(json.dumps({"about": self.about, "looks": self.looks}, indent=1))

    @torch.inference_mode()
    def _measured(self, probes: list[Text]) -> dict:
        return self.student.measured(self.part.eval(), self.lessons(probes))

    def _accepted(self, probes: list[Text]) -> float:
        self._measured(probes)  # the measured figures may shape a draft
        return accepted_length(self.student, self.part, self.lessons(probes), probes)

    def _export(self, probes: list[Text]) -> None:
        measured = self._measured(probes)
        if report := self.student.report(measured):
            say(report)
        self._write(measured)
        kept = kept_lengths(self.student, self.part, self.lessons(probes), probes)
        report = {"recipe": self.student.key, "name": self.name, "tokens": self.budget.spent_tokens}
        report |= {"epochs": round(self.budget.spent_tokens / self.teacher.epoch, 2)}
        say(json.dumps(report | {"seconds": round(self.budget.seconds())} | figures(kept, probes)))

    def _write(self, measured: dict) -> None:
        about = {FIELD: digest_of(self.teacher.folder), **measured}
        write_whole(self.folder, lambda folder: self._save(folder, about))
        say(f"written to {self.folder}")

    def _save(self, folder: Path, about: dict) -> None:
        self.student.save(self.part, folder, about)
        if self.eight_bits:
            halve(folder)


def _line(cells) -> str:
    return "  ".join(f"{cell:>10}" for cell in cells)


def _row(look: dict) -> str:
    loss = "" if look["loss"] is None else f"{look['loss']:.3f}"
    return _line(
        [
            f"{look['done']:.0%}",
            f"{look['tokens']:,}",
            f"{look['epochs']:.2f}",
            loss,
            f"{look['accepted']:.2f}",
        ]
    )
