"""Several runs that take turns, one step each: a comparison on one machine.

No lane's clock contains another's work, because only one lane advances at a time.
"""

from collections.abc import Iterator, Mapping

from app.seats import Job
from viz.race import tagged


class Race:
    """A job made of jobs, by lane name. Their lines come tagged, in the order they happened."""

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
        """The summaries of the lanes that have not given theirs yet."""
        return "".join(tagged(name, job.summary()) for name, job in self._open.items())
