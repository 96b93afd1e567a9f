"""When a visitor's copy of a draft learns: within some milliseconds per step, or after a number of refusals."""

from engine.core.options import number, whole

USUAL = 10.0  # assumed milliseconds of an update, before one was timed

LEARNING = (
    number("milliseconds", 2.0, 0.0, 100.0, "Learning per step").meaning(
        "Milliseconds of learning after a step, on average (0: the number of refusals decides instead)."
    ),
    whole(
        "every", 8, 1, 256, "Refusals per update", advanced=True, depends_on=("milliseconds", 0.0)
    ).meaning("Refusals from one update to the next where no clock decides."),
    number("rate", 0.001, 0.00001, 0.2, "Learning rate", advanced=True).meaning(
        "How far an update may move a weight, as a share of its size."
    ),
)
"""Options of a drafter whose copy of the draft learns."""


class Pace:
    """learned: milliseconds of learning so far."""

    def __init__(self, milliseconds: float, every: int) -> None:
        """milliseconds: of learning after a step, on average; 0: update after ``every`` refusals instead."""
        self._budget, self._every = milliseconds, every
        self._saved, self._cost = 0.0, USUAL
        self.learned = 0.0

    def due(self, waiting: int) -> bool:
        """Whether to learn before the next step. waiting: refusals since the last update. Call this once per step."""
        self._saved = min(self._saved + self._budget, 4 * self._cost)
        due = self._saved >= self._cost if self._budget else waiting >= self._every
        return bool(due and waiting)

    def took(self, milliseconds: float) -> None:
        """Record that an update took this long."""
        self._saved, self.learned = self._saved - milliseconds, self.learned + milliseconds
        self._cost += 0.3 * (milliseconds - self._cost)
