"""Records what a running vLLM server drafts and accepts: one trace per request (docs/serving.md).

vLLM loads ``recorder_plugin``. ``step_taps`` observes each step at vLLM's rejection sampler, and ``record_pipe`` sends
the data to a separate process, ``record_process``, where ``request_record`` makes the lines of the traces. Inside
vLLM's environment these modules need only torch, transformers and the standard library. ``vllm_drafters`` has drafters
that run inside vLLM; vLLM imports their classes from this package.
"""


def __getattr__(name: str):
    if not name[:1].isupper():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from engine.serving.vllm import vllm_drafters  # imported late: the recorder does not need it

    return getattr(vllm_drafters, name)
