"""How often a target writes each token, counted on the text that it wrote for its drafters to learn from.

Prompts do not count: a draft has to guess only the tokens that the target writes (VocabTrim found the target's own text
better to count on than raw text or the draft's).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from transformers import AutoConfig

from engine.methods.shared.vocabulary_part import Vocabulary
from engine.parts.digest import digest_of
from engine.training import selftext
from engine.training.common import need_file, say
from engine.training.teacher import Teacher

SHARES = (0.5, 0.25, 0.125, 0.0625)


def count_tokens(args) -> None:
    """The recipe `vocabulary`."""
    teacher = Teacher.of(args)
    text = selftext.load(need_file(teacher.text_file, "text"))
    rows = AutoConfig.from_pretrained(teacher.folder).get_text_config(decoder=True).vocab_size
    found = Vocabulary.counted(written(text, rows))
    folder = teacher.parts / (args.name or "vocabulary")
    found.save(folder, digest_of(teacher.folder))
    say(f"{int(found.counts.sum()):,} tokens that the target wrote")
    for share in SHARES:
        kept = max(1, round(share * rows))
        say(f"the {kept:,} most frequent of {rows:,} tokens: {found.coverage(kept):.2%} of them")
    say(f"written to {folder}")


def written(text: selftext.SelfText, rows: int) -> Tensor:
    """[rows] int64: how often each token occurs after the prompts."""
    counts = np.zeros(rows, dtype=np.int64)
    ends = zip(text.starts[:-1], text.prompts, text.starts[1:], strict=True)
    for start, prompt, end in ends:
        counts += np.bincount(text.tokens[start + prompt : end], minlength=rows)[:rows]
    return torch.from_numpy(counts)
