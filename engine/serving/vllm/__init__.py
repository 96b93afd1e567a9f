"""Records the drafts and kept tokens of a running vLLM server: one trace per request (docs/serving.md).

vLLM loads ``recorder_plugin``. ``step_taps`` reads each step where vLLM judges it, and ``record_pipe`` hands it to a
separate process, ``record_process``, in which ``request_record`` makes the lines. In vLLM's environment these need only
torch, transformers and the standard library. ``vllm_drafters`` holds drafters for vLLM, which imports their classes
from this package.
"""


def __getattr__(name: str):
    if not name[:1].isupper():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from engine.serving.vllm import vllm_drafters  # imported late: the recorder does not need it

    return getattr(vllm_drafters, name)
