"""Records what a running vLLM server drafts and keeps: one trace a request (docs/serving.md).

``recorder_plugin`` is what vLLM loads, ``step_taps`` reads each step where vLLM judges it, ``record_pipe`` hands it to a process of
its own, ``record_process``, and ``request_record`` makes the lines there. In vLLM's environment only torch, transformers and the standard
library are asked for. ``vllm_drafters`` holds drafters for vLLM, which asks this package for their classes by name.
"""


def __getattr__(name: str):
    if not name[:1].isupper():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from engine.serving.vllm import vllm_drafters  # not for the recorder, which needs little

    return getattr(vllm_drafters, name)
