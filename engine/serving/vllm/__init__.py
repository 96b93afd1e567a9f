"""Records what a running vLLM server drafts and keeps: one trace a request (docs/serving.md).

``recorder_plugin`` is what vLLM loads, ``step_taps`` reads each step where vLLM judges it, ``record_pipe`` hands it to a process of
its own, ``record_process``, and ``request_record`` makes the lines there. In vLLM's environment only torch, transformers and the standard
library are asked for.
"""
