"""Writes the texts of a tuning on many machines: each Ray task lets one candidate continue a few of the prompts.

Ray is optional, and only this module imports it. If a node is lost, Ray runs its tasks again. Each task has one
result, and each result is added once, so no text is counted twice. All times are measured on the nodes.
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
    """Writers on the nodes of a Ray cluster. Every node needs this checkout, and the models in the same folders as
    here."""

    def __init__(self, request: TuningRequest) -> None:
        """Connect to the cluster. Raises UserError if Ray is not installed or no cluster answers."""
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
        """Does the work of ``Writers.write`` on the nodes. Tasks end in any order, but each candidate's texts are
        added in the order of the prompts."""
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
    """Whether something accepts connections at this address. If nothing does, Ray itself would keep trying for a
    quarter of an hour. True without a trial for addresses that only Ray understands, such as "auto"."""
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if not colon or not port.isdecimal():
        return True
    try:
        socket.create_connection((host.strip("[]"), int(port)), PATIENCE).close()
    except (OSError, ValueError, OverflowError):
        return False
    return True


def counted_shard(request: TuningRequest, key: Key, start: int, end: int) -> list[tuple]:
    """Let one candidate continue the prompts with the indices ``start`` to ``end`` - 1. This function runs on a node.
    Returns for each prompt a tuple of its kind, the counts of the candidate's text and the counts of plain decoding's
    text; both counts are dictionaries with the fields of an ``acceptance`` line. key: the candidate's
    ``Candidate.key``."""
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
    """The opened tuning for this request, and its sampling. Each process of a node opens it once."""
    if not _last or _last[0][0] != request:
        sampling = Sampling(request.temperature, request.top_k, request.top_p, request.seed)
        _last[:] = [(request, OpenedTuning(request, sampling), sampling)]
    return _last[0][1:]
