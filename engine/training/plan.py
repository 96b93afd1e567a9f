"""The schedule of a training: depth, windows and learning rate at each step. All of this follows from the step alone, so a
resumed training continues as if it had never stopped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.training.loop import rate_scale


@dataclass(frozen=True)
class WindowFile:
    """A file of training text (`window_files`): its number, how many tokens its windows have, and whether its text is
    drawn by `FINISHING_MIX` instead of `MIX` (`corpus`)."""

    number: int
    length: int
    finishing: bool = False


def numbered(lengths: tuple[int, ...]) -> tuple[WindowFile, ...]:
    return tuple(WindowFile(i, length) for i, length in enumerate(lengths))


@dataclass(frozen=True)
class TrainingPlan:
    """`files` are read one after the other, the first `shallow` of them with `shallow_layers` layers, the others with
    `layers`. From `unlikely_from` on, repetition is unlearned too (`unlikelihood`)."""

    files: tuple[WindowFile, ...]
    layers: int
    shallow: int = 0
    shallow_layers: int = 0
    steps_per_file: int = 512
    step_tokens: int = 12_288
    micro_tokens: int = 2048  # per forward and backward pass
    muon_rate: float = 0.02
    adam_rate: float = 3e-3
    warmup: float = 0.01
    decay_from: float = 0.78
    averaged_steps: int = 10  # steps between updates of the mean of the weights (`optim`)
    unlikely_from: float = 1.0  # share of the steps
    unlikely_every: int = 32  # steps between fresh texts of the model's own
    unlikely_rows: int = 16  # per step
    unlikely_weight: float = 0.5  # relative to the usual loss

    @property
    def steps(self) -> int:
        return len(self.files) * self.steps_per_file

    def _index(self, step: int) -> int:
        return min(step, self.steps - 1) // self.steps_per_file

    def file(self, step: int) -> WindowFile:
        return self.files[self._index(step)]

    def rows(self, step: int) -> int:
        """How many windows of its file a step reads."""
        return self.step_tokens // self.file(step).length

    def stages(self) -> Iterator[tuple[int, int]]:
        """Depth, and the step at which the training with this depth ends; the shallow one comes first."""
        if self.shallow:
            yield self.shallow_layers, self.shallow * self.steps_per_file
        yield self.layers, self.steps

    def rate(self, done: float) -> float:
        """The factor on both learning rates at this progress, 0 to 1: it rises, stays flat, then falls linearly to
        zero."""
        return rate_scale(done, self.warmup, self.decay_from, floor=0.0, least=0.02)

    def unlearns(self, step: int) -> bool:
        return step >= self.unlikely_from * self.steps


TARGET_PLAN = TrainingPlan(
    numbered((256,) * 5 + (512,) * 5 + (1024,))
    + (WindowFile(11, 512, finishing=True), WindowFile(12, 512, finishing=True)),
    layers=8,
    shallow=6,
    shallow_layers=4,
    decay_from=0.92,
    unlikely_from=0.97,
)
# The drafts' start reads some of the same files.
DRAFT_PLAN = TrainingPlan((WindowFile(0, 256), WindowFile(5, 512), WindowFile(6, 512)), layers=3)
LARGER_DRAFT_PLAN = TrainingPlan(
    (WindowFile(5, 512), WindowFile(6, 512)), layers=3, steps_per_file=400
)
