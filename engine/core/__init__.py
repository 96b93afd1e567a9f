"""The parts of speculative decoding that a paper describes: trees, steps, texts, the loops, chance and sampling; the
interfaces of drafters and rules. Imports no other room."""
