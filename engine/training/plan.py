"""The schedule of a target's training: the number of layers, the windows and the learning rates at each step.

All of these depend only on the number of the step, so a resumed training continues as if it had never stopped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.training.loop import rate_scale


@dataclass(frozen=True)
class WindowFile:
    """A file of training windows (`window_files`). length: tokens of a window. finishing: whether the workloads in it
    have the shares of `FINISHING_MIX` instead of `MIX` (`corpus`)."""

    number: int
    length: int
    finishing: bool = False


def numbered(lengths: tuple[int, ...]) -> tuple[WindowFile, ...]:
    return tuple(WindowFile(i, length) for i, length in enumerate(lengths))


@dataclass(frozen=True)
class TrainingPlan:
    """The plan of a training. Its `files` of windows are used in order: the first `shallow` files while the model has
    `shallow_layers` layers, the others with `layers` layers. After the share `unlikely_from` of the steps, the model
    also learns not to repeat itself (`unlikelihood`)."""

    files: tuple[WindowFile, ...]
    layers: int
    shallow: int = 0
    shallow_layers: int = 0
    steps_per_file: int = 512
    step_tokens: int = 12_288
    micro_tokens: int = 2048  # tokens per forward and backward pass
    muon_rate: float = 0.02
    adam_rate: float = 3e-3
    warmup: float = 0.01
    decay_from: float = 0.78
    averaged_steps: int = 10  # steps between updates of the mean of the weights (`optim`)
    unlikely_from: float = 1.0  # share of the steps
    unlikely_every: int = 32  # steps after which the model writes new texts
    unlikely_rows: int = 16  # rows against repetition per step
    unlikely_weight: float = 0.5  # the weight of their loss, relative to the loss of the windows

    @property
    def steps(self) -> int:
        return len(self.files) * self.steps_per_file

    def _index(self, step: int) -> int:
        return min(step, self.steps - 1) // self.steps_per_file

    def file(self, step: int) -> WindowFile:
        return self.files[self._index(step)]

    def rows(self, step: int) -> int:
        """How many windows this step takes from its file."""
        return self.step_tokens // self.file(step).length

    def stages(self) -> Iterator[tuple[int, int]]:
        """Yields, for each stage of the training, the number of layers and the step at which the stage ends. If there
        is a stage with fewer layers, it comes first."""
        if self.shallow:
            yield self.shallow_layers, self.shallow * self.steps_per_file
        yield self.layers, self.steps

    def rate(self, done: float) -> float:
        """The factor on both learning rates at this progress (0 to 1): it rises, stays 1, then falls linearly to 0."""
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
# The draft models' first training reads some of the same files.
DRAFT_PLAN = TrainingPlan((WindowFile(0, 256), WindowFile(5, 512), WindowFile(6, 512)), layers=3)
LARGER_DRAFT_PLAN = TrainingPlan(
    (WindowFile(5, 512), WindowFile(6, 512)), layers=3, steps_per_file=400
)
