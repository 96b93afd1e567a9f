"""The parts of speculative decoding that papers describe: trees, steps, texts, loops, randomness and sampling, and the
interfaces of drafters and rules. This package imports no other package of the engine except ``engine.errors``."""
