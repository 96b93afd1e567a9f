"""Counting on many machines: Ray tasks, each of which writes after some of the prompts with one candidate.

Ray is optional, and imported only here. A task that is lost with its node is run again by Ray; each task has one result, and a
result is merged once, so nothing is counted twice. Times are those of the nodes.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from engine.core.sampling import Sampling
from engine.errors import UserError
from engine.methods import drafter
from engine.tune.candidates import Candidate, Key
from engine.tune.kept_counts import Counts
from engine.tune.opened_tuning import OpenedTuning
from engine.tune.tuning_request import TuningRequest

VERSION = "2.60.0"  # that the extra ``ray`` in pyproject.toml pins
SHARD = 4  # prompts of a task
RETRIES = 5  # of a task whose node was lost
PATIENCE = 10.0  # seconds until an address must answer
ROOT = str(Path(__file__).parents[2])


class RayWriters:
    """Writers on the nodes of a cluster. The nodes need this checkout, and the models in the same folders."""

    def __init__(self, request: TuningRequest) -> None:
        """Raises UserError where Ray is missing or no cluster answers."""
        refusal = f"No Ray cluster answers at {request.ray!r}."
        if not _is_listened_to(request.ray):
            raise UserError(refusal)
        try:
            import ray
        except ImportError:
            raise UserError(
                f"A Ray cluster needs Ray, which is not installed here: pip install ray=={VERSION}."
            ) from None
        self._ray = ray
        paths = os.pathsep.join(filter(None, (ROOT, os.environ.get("PYTHONPATH"))))
        try:
            ray.init(
                request.ray,
                log_to_driver=False,
                ignore_reinit_error=True,
                runtime_env={"env_vars": {"PYTHONPATH": paths}},
            )
        except Exception as error:
            raise UserError(refusal) from error
        self._request = ray.put(replace(request, record=None, machines=()))

    def write(
        self, plain: Candidate, candidates: Sequence[Candidate], upto: int
    ) -> Iterator[Candidate]:
        """Does the work of ``Writers.write``. Tasks end in any order, but each candidate's texts are counted in the order of the
        prompts."""
        ray, waiting = self._ray, {}
        task = ray.remote(num_cpus=1, max_retries=RETRIES)(counted_shard)
        ended: dict[tuple[Key, int], list] = {}
        for candidate in (plain, *candidates):
            for start in range(candidate.prompts, upto, SHARD):
                places = start, min(start + SHARD, upto)
                waiting[task.remote(self._request, candidate.key, *places)] = candidate, start
        try:
            while waiting:
                (ready,), _ = ray.wait([*waiting], num_returns=1)
                candidate, start = waiting.pop(ready)
                ended[candidate.key, start] = self._result(ready)
                while (texts := ended.pop((candidate.key, candidate.prompts), None)) is not None:
                    for kind, *counts in texts:
                        candidate.add(kind, *map(Counts.of_line, counts))
                        yield candidate
        finally:
            for reference in waiting:
                ray.cancel(reference, force=True)

    def _result(self, reference) -> list:
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, UserError):
                raise error.cause from None
            raise
        except self._ray.exceptions.RayError as error:
            raise UserError(
                f"A node was lost {RETRIES} times in the same task; what was counted is kept."
            ) from error


def _is_listened_to(address: str) -> bool:
    """False where nobody takes a connection; Ray would try for a quarter of an hour. Only Ray knows other addresses, such as auto."""
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if not colon or not port.isdecimal():
        return True
    try:
        socket.create_connection((host.strip("[]"), int(port)), PATIENCE).close()
    except (OSError, ValueError, OverflowError):
        return False
    return True


def counted_shard(request: TuningRequest, key: Key, start: int, end: int) -> list[tuple]:
    """Kind, counts, and counts of plain decoding, of the texts after these prompts; runs on a node."""
    name, size, rule = key
    opened, sampling = _opened(request)
    candidate, texts = Candidate(drafter(name), size, rule), []
    for asked, prompt in opened.prompts[start:end]:
        text = opened.models, prompt, sampling, request.new_tokens
        counts = candidate.write(*text).to_dict()
        plainly = counts if candidate.plain else opened.plain.write(*text).to_dict()
        texts.append((asked.kind, counts, plainly))
    return texts


_last: list[tuple[TuningRequest, OpenedTuning, Sampling]] = []


def _opened(request: TuningRequest) -> tuple[OpenedTuning, Sampling]:
    """Opened once per process of a node."""
    if not _last or _last[0][0] != request:
        sampling = Sampling(request.temperature, request.top_k, request.top_p, request.seed)
        _last[:] = [(request, OpenedTuning(request, sampling), sampling)]
    return _last[0][1:]
