"""A race: several runs that take turns on one machine, one step each.

No lane's clock contains another's work, because only one lane advances at a time.
"""

from collections.abc import Iterator, Mapping

from app.seats import Job
from viz.race import tagged


class Race:
    """A job made of one job for each lane. Each line carries its lane's name; the lines come in the order of the
    steps."""

    def __init__(self, lanes: Mapping[str, Job]) -> None:
        self._lanes = dict(lanes)
        self._open = dict(lanes)

    def header(self) -> str:
        return "".join(tagged(name, job.header()) for name, job in self._lanes.items())

    def steps(self) -> Iterator[str]:
        steps = {name: job.steps() for name, job in self._lanes.items()}
        while steps:
            for name in list(steps):
                line = next(steps[name], None)
                if line is None:
                    del steps[name]
                    yield tagged(name, self._open.pop(name).summary())
                else:
                    yield tagged(name, line)

    def cancel(self) -> None:
        for job in self._open.values():
            job.cancel()

    def summary(self) -> str:
        """Return the summaries of the lanes that have not written theirs yet."""
        return "".join(tagged(name, job.summary()) for name, job in self._open.items())
