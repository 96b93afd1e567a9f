"""What a training does at each step: depth, windows, learning rate. All of this follows from the step alone, so a
resumed training continues as if it had never stopped."""

from __future__ import annotations

from dataclasses import dataclass


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
    micro_tokens: int = 2048  # per forward and backward pass of one process
    muon_rate: float = 0.02
    adam_rate: float = 3e-3
    warmup: float = 0.01
    decay_from: float = 0.78
    averaged_steps: int = 10  # steps between updates of the mean of the weights,
    averaging: float = 0.98  # which keeps this share of its old value
    unlikely_from: float = 1.0  # share of the steps
    unlikely_every: int = 32  # steps between fresh texts of the model's own
    unlikely_rows: int = 8  # per process and step
    unlikely_weight: float = 0.5  # relative to the usual loss

    @property
    def steps(self) -> int:
        return len(self.files) * self.steps_per_file

    def _index(self, step: int) -> int:
        return min(step, self.steps - 1) // self.steps_per_file

    def file(self, step: int) -> WindowFile:
        return self.files[self._index(step)]

    def rows(self, step: int) -> range:
        """Which windows of its file a step reads."""
        count = self.step_tokens // self.file(step).length
        first = step % self.steps_per_file * count
        return range(first, first + count)

    def depth(self, step: int) -> int:
        return self.shallow_layers if self._index(step) < self.shallow else self.layers

    def rate(self, step: int) -> float:
        """The factor on both learning rates: it rises, stays flat, then falls linearly to zero."""
        done = step / self.steps
        if done < self.warmup:
            return max(0.02, done / self.warmup)
        return 1.0 if done < self.decay_from else (1 - done) / (1 - self.decay_from)

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
