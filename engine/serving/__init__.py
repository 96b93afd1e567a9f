"""Targets behind a serving engine: the draft is made here, and the engine, on another machine, reports the target's
log-probabilities. The package ``vllm`` is different: it holds a recorder that vLLM loads."""
