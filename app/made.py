"""Wraps each run that is made for a visitor: its lines pass unchanged, and are counted and logged.

The log names the drafter and the outcome, never the text that the run writes.
"""

import json
import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from app import fence, logs, metrics
from app.fence import Maker
from app.seats import Job
from app.turns import TURNS
from app.visitors import VISITORS
from engine.chat.wanted import CLIENT, WANTED
from engine.errors import UserError

log = logging.getLogger("draftscope.run")


def made(session: str, tab: str, make: Maker, values: Mapping[str, object]) -> "Made":
    """Make the run of a visitor's control values and return it. Raises UserError, one sentence, if it is refused."""
    try:
        with asked_by(session):
            return Made(fence.job, session, tab, make, values)
    except UserError:
        metrics.REFUSED.labels(tab.partition("#")[0]).inc()
        log.info("run refused", extra={"tab": tab, "visitor": logs.visitor(session)})
        raise


@contextmanager
def asked_by(session: str) -> Iterator[None]:
    """Within this context, the opening of a run is given up once its visitor has left: while it waits for other runs of
    the same address, and while a grammar is made. A session that never was here, as in a test, cannot leave."""
    was_here, client = VISITORS.here(session), VISITORS.address(session)
    before = (
        (WANTED, WANTED.set(lambda: not was_here or VISITORS.here(session))),
        (CLIENT, CLIENT.set(client)),
    )
    try:
        with TURNS.opening(client):
            yield
    finally:
        for variable, token in before:
            variable.reset(token)


class Made:
    """A job that wraps another job, and counts and logs its lines."""

    def __init__(self, open_job, session: str, tab: str, make: Maker, values: Mapping) -> None:
        self._asked = time.monotonic()
        self._who = {"tab": tab, "visitor": logs.visitor(session)}
        self._lanes: dict[str, dict] = {}
        self._first = self._over = False
        self.milliseconds = 0.0
        """Engine time of all steps so far."""
        self.elsewhere = False
        """Whether an engine on another machine makes the passes of the target."""
        self._job: Job = open_job(tab, make, values)
        self._header = self._job.header()
        self._note(self._header)
        log.info("run began", extra={**self._who, **logs.prompt(values.get("prompt"))})

    def header(self) -> str:
        return self._header

    def steps(self) -> Iterator[str]:
        for lines in self._job.steps():
            self._note(lines)
            yield lines

    def cancel(self) -> None:
        self._job.cancel()
        if not self._over:
            self._over = True
            self._note(self._job.summary())

    def summary(self) -> str:
        return self._job.summary()

    def _note(self, lines: str) -> None:
        for line in filter(None, lines.split("\n")):
            entry = json.loads(line)
            take = {"run": self._began, "step": self._stepped, "summary": self._ended}
            if entry["kind"] in take:  # the lines of a tuning are of other kinds
                take[entry["kind"]](entry, entry.get("lane", ""))

    def _began(self, run: dict, lane: str) -> None:
        labels = {"model_name": run["target"]["name"], "drafter": run["drafter"]["key"]}
        self._lanes[lane] = labels
        self.elsewhere |= run["target"].get("clock") == "remote"
        metrics.PROMPT_TOKENS.labels(**labels).inc(len(run["prompt"]["tokens"]))

    def _stepped(self, step: dict, lane: str) -> None:
        labels = self._lanes[lane]
        if not self._first:
            self._first = True
            waited = time.monotonic() - self._asked
            metrics.FIRST_STEP.labels(labels["model_name"]).observe(waited)
        metrics.STEPS.labels(**labels).inc()
        metrics.NEW_TOKENS.labels(**labels).inc(len(step["output"]["tokens"]))
        for stage, spent in step["milliseconds"].items():
            self.milliseconds += spent
            metrics.ENGINE_SECONDS.labels(**labels, stage=stage).inc(spent / 1000)
        _count_draft(step["nodes"], labels)

    def _ended(self, summary: dict, lane: str) -> None:
        labels = self._lanes[lane]
        reason = metrics.FINISHED[summary["stop"]]
        metrics.ENDED.labels(**labels, finished_reason=reason).inc()
        names = ("stop", "new_tokens", "steps", "mean_accepted", "tokens_per_second")
        figures = {name: summary[name] for name in names}
        log.info("run ended", extra={**self._who, **labels, **figures})


def _count_draft(nodes: Mapping[str, list], labels: Mapping[str, str]) -> None:
    if not nodes["token"]:
        return
    metrics.DRAFTS.labels(**labels).inc()
    metrics.DRAFT_TOKENS.labels(**labels).inc(len(nodes["token"]))
    for depth, status in zip(nodes["depth"], nodes["status"], strict=True):
        if status == "accepted":
            metrics.ACCEPTED.labels(**labels).inc()
            metrics.ACCEPTED_PER_POSITION.labels(**labels, position=str(depth - 1)).inc()
