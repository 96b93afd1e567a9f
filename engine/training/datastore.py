"""The datastore of the embedded family: texts of our own generators, none of them held out."""

from __future__ import annotations

import itertools

from engine.methods.shared.datastore_part import write_datastore
from engine.training.common import place, say
from engine.training.generators import MAKERS, examples
from engine.training.generators.words import Vocabulary
from engine.training.tokenizer import load_tokenizer

TOKENS = 60_000


def datastore(args) -> None:
    """Write examples of all workloads in turn, each followed by an end-of-text token."""
    tokenizer = load_tokenizer(place(args, "target"))
    wanted = args.tokens or TOKENS
    streams = [examples(name, args.seed, Vocabulary()) for name in MAKERS]
    tokens: list[int] = []
    for stream in itertools.cycle(streams):
        tokens += tokenizer(next(stream).text)["input_ids"] + [tokenizer.eos_token_id]
        if len(tokens) >= wanted:
            break
    folder = place(args, "datastore")
    write_datastore(folder, tokens, tokenizer)
    say(f"{len(tokens):,} tokens -> {folder}")
