"""The recipes of two parts that need no training: `vocabulary` and `datastore`.

`vocabulary` counts how often a target writes each token, in the text that it wrote so that its drafters can learn from
it. Prompts are not counted, because a draft model has to guess only the tokens that the target writes. (VocabTrim
found the target's own text better for this purpose than raw text or the draft model's text.) `datastore` makes the
embedded family's datastore from examples of Draftscope's generators, none of them held out.
"""

from __future__ import annotations

import itertools

import numpy as np
import torch
from torch import Tensor
from transformers import AutoConfig

from engine.methods.shared.datastore_part import write_datastore
from engine.methods.shared.vocabulary_part import Vocabulary
from engine.parts.digest import digest_of
from engine.training import selftext
from engine.training.common import need_file, place, say
from engine.training.generators import MAKERS, examples
from engine.training.generators import words as english
from engine.training.teacher import Teacher
from engine.training.tokenizer import load_tokenizer

TOKENS = 60_000  # tokens of the datastore
SHARES = (0.5, 0.25, 0.125, 0.0625)


def vocabulary(args) -> None:
    """The recipe `vocabulary`: counts the tokens that the target wrote, and writes the counts to the part's folder."""
    teacher = Teacher.of(args)
    text = selftext.load(need_file(teacher.text_file, "text"))
    rows = AutoConfig.from_pretrained(teacher.folder).get_text_config(decoder=True).vocab_size
    frequencies = Vocabulary.counted(written(text, rows))
    folder = teacher.parts / (args.name or "vocabulary")
    frequencies.save(folder, digest_of(teacher.folder))
    say(f"{int(frequencies.counts.sum()):,} tokens that the target wrote")
    for share in SHARES:
        kept = max(1, round(share * rows))
        say(
            f"the {kept:,} most frequent of {rows:,} tokens: {frequencies.coverage(kept):.2%} of them"
        )
    say(f"written to {folder}")


def written(text: selftext.SelfText, rows: int) -> Tensor:
    """How often each token occurs in the text after its prompts, int64 [rows]; ``rows`` is the size of the
    vocabulary."""
    counts = np.zeros(rows, dtype=np.int64)
    ends = zip(text.starts[:-1], text.prompts, text.starts[1:], strict=True)
    for start, prompt, end in ends:
        counts += np.bincount(text.tokens[start + prompt : end], minlength=rows)[:rows]
    return torch.from_numpy(counts)


def datastore(args) -> None:
    """The recipe `datastore`: writes a datastore of examples of all workloads in turn, each followed by an end-of-text
    token."""
    tokenizer = load_tokenizer(place(args, "target"))
    most = args.tokens or TOKENS
    streams = [examples(name, args.seed, english.Vocabulary()) for name in MAKERS]
    tokens: list[int] = []
    for stream in itertools.cycle(streams):
        tokens += tokenizer(next(stream).text)["input_ids"] + [tokenizer.eos_token_id]
        if len(tokens) >= most:
            break
    folder = place(args, "datastore")
    write_datastore(folder, tokens, tokenizer)
    say(f"{len(tokens):,} tokens -> {folder}")
