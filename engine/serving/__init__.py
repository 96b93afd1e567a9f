"""A target behind a serving engine: the draft is made here, and the engine, somewhere else, tells what the target thinks of
it. ``vllm`` is the other way: a recorder that vLLM loads."""
