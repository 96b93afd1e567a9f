"""The record of one step of decoding, and the clock that timed it."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from engine.core.ending import Ending
from engine.core.rule import Final, Judgement, Verdict
from engine.core.seen import Draft
from engine.core.tree import DraftTree

Stop = Literal["eos", "stop", "length", "context"]
STAGES = ("draft", "verify", "judge", "commit")


@dataclass(frozen=True)
class Span:
    """Work of one model (its ``lane``) that overlaps work of another model. start, end: milliseconds on a real clock
    since the run began."""

    lane: str
    work: str
    start: float
    end: float


@dataclass
class Step:
    """One finished step.

    draft: the draft that the target's pass read.
    logits, p: [N+1, V], the target's logits and the distributions sampled from, after the root and each node. Both are
    None if the target made no pass, and may be None if nobody records the steps. A row that the target did not compute
    is NaN.
    output: the tokens of the accepted path and, unless ``final`` is None, the final token.
    milliseconds: the time of each stage in STAGES. prefill_milliseconds: in the first step the time of reading the
    prompt, in later steps 0. If the text copied its prompt's KV cache from another text, this is the time that the
    other text needed to read the prompt (``engine.core.prompt``).
    passes: the number of forward passes of each model. spans: the pieces of work that overlapped, in loops that overlap
    work. stop: why the run ends after this step; None if it goes on.
    """

    index: int
    draft: Draft
    logits: Tensor | None
    p: Tensor | None
    verdict: Verdict
    output: list[int]
    final: Final
    milliseconds: dict[str, float] = field(default_factory=dict)
    prefill_milliseconds: float = 0.0
    stop: Stop | None = None
    passes: dict[str, int] = field(default_factory=lambda: {"target": 1})
    spans: list[Span] = field(default_factory=list)

    @property
    def tree(self) -> DraftTree:
        return self.draft.tree

    @property
    def position(self) -> int:
        """The number of tokens committed before the step."""
        return self.draft.position


def cut_at_end(verdict: Verdict, tree: DraftTree, ending: Ending) -> tuple[Verdict, Final]:
    """Return the verdict without the tokens that were accepted after an end of the text, and the kind of the final
    token, which is None if the text ends within the accepted path."""
    count = ending.first([tree.tokens[node] for node in verdict.accepted])
    if count is not None:
        return _first(verdict, tree, count), None
    return verdict, verdict.final


def _first(verdict: Verdict, tree: DraftTree, count: int) -> Verdict:
    """The verdict that the rule would have reached if the walk had ended at its ``count``-th accepted node."""
    walk = verdict.walk[:count]
    places = set(walk)

    def judged(entry: Judgement) -> bool:
        return tree.parents[entry.node] in places

    status = [
        state if tree.parents[node] in places else "ignored"
        for node, state in enumerate(verdict.status)
    ]
    return Verdict(
        accepted=verdict.accepted[:count],
        status=status,
        judgements=[entry for entry in verdict.judgements if judged(entry)],
        final_token=verdict.final_token,
        final=verdict.final,
        walk=walk,
        residuals={place: r for place, r in verdict.residuals.items() if place in places},
        exhibits=verdict.exhibits,
    )


_untimed = threading.local()
"""seconds: how long this thread has been in ``untimed``; inside: whether it is there now."""


@contextmanager
def untimed() -> Iterator[None]:
    """Within this context, the time of this thread counts for no ``Clock``: a pass that must first be compiled is
    compiled once, and says nothing of the passes after it."""
    if getattr(_untimed, "inside", False):
        yield
        return
    began, _untimed.inside = time.perf_counter(), True
    try:
        yield
    finally:
        _untimed.inside = False
        spent = time.perf_counter() - began
        _untimed.seconds = getattr(_untimed, "seconds", 0.0) + spent


class Clock:
    """Measures the milliseconds since the last lap, without the time spent in ``untimed``. A lap that begins in one thread and
    ends in another means nothing.

    precise: wait for the device at each lap, so that no stage is charged for work that an earlier stage launched.
    Without this, the times of single stages mean little, and only their sum over a step is right.
    """

    def __init__(self, device: torch.device, precise: bool) -> None:
        self._device = device
        self._waits = precise and device.type == "cuda"
        self._last = self._now()

    def lap(self) -> float:
        if self._waits:
            torch.cuda.synchronize(self._device)
        now = self._now()
        elapsed, self._last = (now - self._last) * 1000, now
        return elapsed

    @staticmethod
    def _now() -> float:
        return time.perf_counter() - getattr(_untimed, "seconds", 0.0)
