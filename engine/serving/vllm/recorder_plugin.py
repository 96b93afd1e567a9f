"""The plugin through which vLLM starts the recording (entry point group ``vllm.general_plugins``). It does nothing
unless ``DRAFTSCOPE_RECORD`` names a folder.

If the recorder fails, it writes one line to vLLM's log and stops recording; the requests themselves go on.
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Mapping
from typing import NamedTuple

log = logging.getLogger("vllm.draftscope")

FOLDER, BYTES, SHARE = "DRAFTSCOPE_RECORD", "DRAFTSCOPE_RECORD_BYTES", "DRAFTSCOPE_RECORD_SHARE"
USUAL_BYTES = 256_000_000


class RecordSettings(NamedTuple):
    """The recorder's settings.
    folder: where the records are written. most_bytes: limit for all records in the folder together. share: the share
    of requests that are recorded, above 0 and at most 1."""

    folder: str
    most_bytes: int
    share: float


def settings_of(environment: Mapping[str, str]) -> RecordSettings | None:
    """The recorder's settings in these environment variables; None if they ask for no recording. Raises ValueError,
    one sentence, for an invalid number."""
    folder = environment.get(FOLDER, "")
    if not folder:
        return None
    numbers = environment.get(BYTES, ""), environment.get(SHARE, "")
    try:
        most, share = int(numbers[0] or USUAL_BYTES), float(numbers[1] or 1)
    except ValueError:
        most, share = 0, 0.0
    if not (most > 0 and 0 < share <= 1):
        raise ValueError(
            f"{BYTES} must be a whole number above 0, and {SHARE} a number above 0, at most 1."
        )
    return RecordSettings(os.path.abspath(folder), most, share)


def register() -> None:
    """Called by vLLM in each of its processes. A worker process begins to record after it has loaded its model
    runner."""
    try:
        settings = settings_of(os.environ)
        if settings is None:
            return
        from vllm.v1.worker.worker_base import WorkerWrapperBase

        begin = WorkerWrapperBase.init_device
        if hasattr(begin, "__wrapped__"):
            return  # vLLM may load a plugin twice

        @functools.wraps(begin)
        def init_device(self, *given, **named):
            result = begin(self, *given, **named)
            attach(self.worker, settings)
            return result

        WorkerWrapperBase.init_device = init_device
    except Exception as error:  # noqa: BLE001 - a recorder must not keep a server from starting
        log.error("Draftscope records nothing: %s", error)


def attach(worker, settings: RecordSettings) -> None:
    """Begin to record the steps of this worker's model runner. Nothing is recorded if the server does not speculate,
    or if another worker records the same model (``_is_first``)."""
    try:
        if worker.vllm_config.speculative_config is None:
            log.warning("Draftscope records nothing: this server does not speculate.")
        elif worker.use_v2_model_runner:
            log.warning(
                "Draftscope records nothing: it knows vLLM's first model runner only; start with VLLM_USE_V2_MODEL_RUNNER=0."
            )
        elif _is_first(worker):
            from engine.serving.vllm.record_pipe import RecordPipe
            from engine.serving.vllm.step_taps import StepTaps

            runner = worker.model_runner
            pipe = RecordPipe(settings.folder, settings.most_bytes, about(runner))
            StepTaps(runner, pipe, settings.share).install()
            log.info("Draftscope records in %s.", settings.folder)
    except Exception as error:  # noqa: BLE001
        log.error("Draftscope records nothing: %s", error)


def _is_first(worker) -> bool:
    """Whether this worker is the first of those that hold the last pipeline stage of a model. All of these sample the
    same tokens, so one of them is enough."""
    parallel = worker.vllm_config.parallel_config
    last_stage = worker.rank // parallel.tensor_parallel_size == parallel.pipeline_parallel_size - 1
    return last_stage and worker.rank % parallel.tensor_parallel_size == 0


def about(runner) -> dict:
    """Facts about the server that are the same in all records. tokenizer: (name or folder, revision)."""
    from vllm import __version__

    model, speculative = runner.model_config, runner.speculative_config
    served = model.served_model_name
    return {
        "engine": f"vLLM {__version__}",
        "target": str(served[0] if isinstance(served, list) else served or model.model),
        "tokenizer": (str(model.tokenizer), model.tokenizer_revision),
        "vocab_size": model.get_vocab_size(),
        "dtype": str(model.dtype).removeprefix("torch."),
        "device": str(runner.device),
        "context": runner.max_model_len,
        "method": str(speculative.method),
        "draft": str(speculative.model or ""),
        "tokens": speculative.num_speculative_tokens,
        "rule": str(speculative.rejection_sample_method),
    }
