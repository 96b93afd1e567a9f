"""The loss of a training against the tokens it has read, kept in a small file."""

from __future__ import annotations

import json
import time
from pathlib import Path

from engine.training.plan import TrainingPlan

EVERY = 32  # steps averaged in one point


class Curve:
    """Points [step, tokens, loss, tokens per second]; the file's points are kept up to the step where
    training resumes."""

    def __init__(self, path: Path, step: int):
        self.path = path
        known = json.loads(path.read_text()) if path.exists() else []
        self.points = [p for p in known if p[0] <= step]
        self.recent: list[float] = []
        self.since = time.monotonic()

    def add(self, step: int, loss: float, plan: TrainingPlan, say=print) -> None:
        self.recent.append(loss)
        if step % EVERY:
            return
        now = time.monotonic()
        speed = len(self.recent) * plan.step_tokens / (now - self.since)
        mean = sum(self.recent) / len(self.recent)
        self.points.append([step, step * plan.step_tokens, round(mean, 4), round(speed)])
        say(
            f"step {step} of {plan.steps}  {step * plan.step_tokens / 1e6:.2f} M tokens  loss {mean:.3f}  "
            f"{speed:.0f} tokens/s  windows of {plan.file(step - 1).length}  layers {plan.depth(step - 1)}  "
            f"{time.strftime('%H:%M:%S')}"
        )
        self.recent, self.since = [], now

    def save(self) -> None:
        temporary = self.path.with_suffix(".tmp")
        temporary.write_text(json.dumps(self.points) + "\n")
        temporary.replace(self.path)
