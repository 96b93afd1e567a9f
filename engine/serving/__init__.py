"""Targets behind a serving engine: drafts are made in this process, and the engine, on another machine, reports the
target's log-probabilities. The package ``vllm`` is different: it holds a recorder that vLLM loads."""
