"""Observes each step of a vLLM worker at the rejection sampler, where drafted tokens are judged.

The sampler receives the drafted tokens of all requests one after another, the target's logits for each of them (after
temperature, truncation and masks), and q if the drafter has one. It is the same for all drafters, so the drafters
themselves need not be observed. Only the few numbers of p and q that a trace shows are copied from the device. All
further work is done in another process.
"""

from __future__ import annotations

import functools
import logging
import time
import zlib
from collections.abc import Callable

import torch
from torch import Tensor

from engine.serving.vllm.record_pipe import RecordPipe

log = logging.getLogger("vllm.draftscope")
TOP = 8
"""The number of likeliest tokens that are recorded of each distribution, as in every trace."""
BLOCK = 32
"""The number of neighbouring tokens that form a block; ``likeliest`` first computes the maximum of each block."""


class StepTaps:
    """Wraps methods of one model runner (``vllm.v1.worker.gpu_model_runner.GPUModelRunner``), and functions of the
    sampler, with observers that note the data of each step."""

    def __init__(self, runner, pipe: RecordPipe, share: float) -> None:
        """share: the share of requests that are recorded."""
        self._runner, self._pipe, self._share = runner, pipe, share
        self._recorded: set[str] = set()
        self._left_out: set[str] = set()
        self._begun: list[dict] = []
        self._ended: list[str] = []
        self._began = time.perf_counter()
        self._drafting = 0.0
        self._sampling = self._broken = False
        self._judged: dict = {}
        self._coins: Tensor | None = None
        self._rows: Tensor | None = None

    def install(self) -> None:
        from vllm.v1.sample import rejection_sampler

        runner = self._runner
        runner.execute_model = self._around(runner.execute_model, before=self._stepping)
        runner._sample = self._around(runner._sample, before=self._begin, after=self._end)
        runner.propose_draft_token_ids = self._around(
            runner.propose_draft_token_ids, after=self._drafted
        )
        rejection_sampler.rejection_sample = self._around(
            rejection_sampler.rejection_sample, after=self._judge
        )
        rejection_sampler.generate_uniform_probs = self._around(
            rejection_sampler.generate_uniform_probs, after=self._tossed
        )

    def _around(
        self, work: Callable, before: Callable | None = None, after: Callable | None = None
    ):
        """Return ``work`` wrapped with observers. before(*arguments) is called before ``work``, and after(result,
        seconds, *arguments) after it; either may be None."""

        @functools.wraps(work)
        def watched(*given, **named):
            if before is not None:
                self._look(before, *given, **named)
            began = time.perf_counter()
            result = work(*given, **named)
            if after is not None:
                self._look(after, result, time.perf_counter() - began, *given, **named)
            return result

        return watched

    def _look(self, look: Callable, *given, **named) -> None:
        if self._broken:
            return
        try:
            if self._pipe.broken:
                raise OSError(self._pipe.broken)
            look(*given, **named)
        except Exception as error:  # noqa: BLE001 - no request may fail of being recorded
            self._broken = True
            log.error("Draftscope has stopped recording: %s: %s", type(error).__name__, error)

    def _stepping(self, scheduled, *_, **__) -> None:
        self._began = time.perf_counter()
        over = scheduled.finished_req_ids
        self._ended += self._recorded & over
        self._recorded -= over
        self._left_out -= over
        if self._ended and not scheduled.total_num_scheduled_tokens:
            self._post({})

    def _begin(self, *_, **__) -> None:
        """Called before a batch is sampled: decides for each new request of the batch whether to record it."""
        self._sampling, self._judged, self._coins = True, {}, None
        batch = self._runner.input_batch
        for name in batch.req_ids[: batch.num_reqs]:
            if name not in self._recorded and name not in self._left_out:
                self._meet(name)

    def _meet(self, name: str) -> None:
        """Decide whether to record a request that is in no list yet, and note its prompt and settings if so. A request
        that has already written tokens is not recorded."""
        state = self._runner.requests[name]
        params, prompt = state.sampling_params, state.prompt_token_ids
        chosen = zlib.crc32(name.encode()) < self._share * 2**32
        if not chosen or not prompt or params is None or state.output_token_ids:
            self._left_out.add(name)
            return
        self._recorded.add(name)
        ends = {params.eos_token_id} - {None}
        self._begun.append(
            {
                "request": name,
                "when": time.time(),
                "prompt": list(prompt),
                "temperature": params.temperature,
                "top_k": max(0, params.top_k),
                "top_p": params.top_p,
                "min_p": params.min_p,
                "seed": params.seed,
                "ends": sorted(ends),
                "stops": sorted(set(params.stop_token_ids or ()) - ends),
                "most": params.max_tokens,
            }
        )

    def _tossed(self, coins: Tensor, _seconds: float, *_, **__) -> None:
        self._coins = coins

    def _judge(
        self, written: Tensor, _seconds: float, drafted, counts, _most, _sums, q, logits, *_, **__
    ) -> None:
        """Called after the rejection sampler: notes its inputs and its result. written: [B, K + 1], the result for B
        requests with at most K drafted tokens each, filled up with negative numbers. drafted: the N drafted tokens of
        all requests together, [N]. counts: the number of drafted tokens of each request. q: [N, V] or None. logits: the
        target's logits, [N, V]."""
        if not (self._sampling and self._recorded):
            return  # vLLM warms up, or nobody is recorded
        self._judged = {"drafted": drafted.int(), "counts": list(counts), "coins": self._coins}
        named = drafted.clamp(min=0).long()[:, None]
        if q is not None:
            self._judged["q"] = q.gather(1, named).float()[:, 0]
        # on a CPU the outcome is known here, so only the walked rows are read
        rows = self._walked(written, counts) if logits.device.type == "cpu" else None
        if rows is not None:
            few = torch.tensor(rows, dtype=torch.long)
            named, logits = named.index_select(0, few), self._own_rows(logits, few)
            q = None if q is None else q.index_select(0, few)
        top, tokens = likeliest(logits, TOP)
        weights = (logits.sub_ if rows is not None else logits.sub)(top[:, :1]).exp_()
        total = weights.sum(-1, keepdim=True)
        self._judged |= {
            "rows": rows,
            "p": (weights.gather(1, named) / total).float()[:, 0],
            "top": tokens.int(),
            "top_p": ((top - top[:, :1]).exp_() / total).float(),
        }
        if q is not None:
            self._judged["top_q"] = q.gather(1, tokens).float()

    def _own_rows(self, logits: Tensor, rows: Tensor) -> Tensor:
        """A copy of the logits at the indices ``rows``. It lies in a buffer that is used again in every step, because
        touching new memory costs more than the copy."""
        if self._rows is None or len(self._rows) < len(rows):
            self._rows = logits.new_empty(len(logits), logits.shape[-1])
        return torch.index_select(logits, 0, rows, out=self._rows[: len(rows)])

    def _walked(self, written: Tensor, counts: list[int]) -> list[int]:
        """The indices of the rows of logits at which a drafted token was judged (accepted or refused), for recorded
        requests only. written, counts: as in ``_judge``."""
        batch, rows, start = self._runner.input_batch, [], 0
        lengths = (written >= 0).sum(1).tolist()
        for name, count, length in zip(batch.req_ids, counts, lengths, strict=False):
            if name in self._recorded:
                rows += range(start, start + min(count, length))
            start += count
        return rows

    def _drafted(self, _result, seconds: float, *_, **__) -> None:
        self._drafting = seconds

    def _end(self, output, seconds: float, *_, **__) -> None:
        """Called after a batch was sampled: sends the data of the step."""
        self._sampling = False
        batch = self._runner.input_batch
        names = list(batch.req_ids[: batch.num_reqs])
        if not self._recorded.isdisjoint(names) or self._ended:
            now = time.perf_counter()
            spent = {
                "draft": self._drafting,
                "verify": now - seconds - self._began,
                "judge": seconds,
            }
            self._post(
                {
                    "names": [name if name in self._recorded else None for name in names],
                    "discarded": self._runner.discard_request_mask.np[: len(names)].tolist(),
                    "written": output.sampled_token_ids,
                    "milliseconds": {stage: 1000 * time_ for stage, time_ in spent.items()},
                    **self._judged,
                }
            )
        self._drafting, self._judged, self._coins = 0.0, {}, None

    def _post(self, step: dict) -> None:
        copied = None
        parcel = {"begun": self._begun, "ended": self._ended}
        for name, value in step.items():
            parcel[name] = _copied(value) if isinstance(value, Tensor) else value
        if any(isinstance(value, Tensor) and value.is_cuda for value in step.values()):
            copied = torch.cuda.Event(blocking=True)
            copied.record()
        if self._pipe.post(copied, parcel):
            self._begun, self._ended = [], []
            return
        # the steps of these requests have a gap now: their records end here, and later requests are recorded again
        lost = self._recorded.intersection(step.get("names", ()))
        self._begun = []
        self._ended += lost
        self._recorded -= lost
        self._left_out |= lost


def likeliest(logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The same as ``logits.topk(count)`` for each row of [N, V], but five times as fast on a CPU. It searches only the
    ``count`` blocks of neighbouring tokens with the greatest maxima, because these must contain the ``count`` greatest
    numbers."""
    size = logits.shape[-1] // BLOCK * BLOCK
    if size < 2 * count * BLOCK:
        return logits.topk(min(count, logits.shape[-1]), -1)
    blocks = logits[:, :size].unflatten(-1, (-1, BLOCK)).amax(-1).topk(count, -1).indices
    within = torch.arange(BLOCK, device=logits.device)
    rest = torch.arange(size, logits.shape[-1], device=logits.device).expand(len(logits), -1)
    places = torch.cat([(blocks[..., None] * BLOCK + within).flatten(1), rest], 1)
    values, order = logits.gather(1, places).topk(count, -1)
    return values, places.gather(1, order)


def _copied(value: Tensor) -> Tensor:
    """A copy of a tensor on the CPU. A copy from a GPU is complete only when the GPU has finished its pending work."""
    return value.to("cpu", non_blocking=True) if value.is_cuda else value.detach().clone()
