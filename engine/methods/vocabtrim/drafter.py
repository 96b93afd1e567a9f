"""A chain from a draft model whose head has only the tokens that the target writes most often.

Goel et al., VocabTrim: Vocabulary Pruning for Efficient Speculative Decoding in LLMs (2025). In a small draft model the
head reads more bytes per token than any other part. Tokens that the head lacks have q = 0: they are never drafted.
Where the target writes one of them, the draft is refused, so the text stays the target's.
"""

import torch
from torch import Tensor

from engine.core.exhibits import Gauge, Table, Token
from engine.core.options import number, whole
from engine.methods.shared.draft_model import STOP, DraftModelDrafter
from engine.methods.shared.vocabulary_part import Vocabulary
from engine.model.cut_head import head_bytes, with_head
from engine.model.language_model import LanguageModel

SHARES = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 1.0)
"""The shares of the head's rows that can be kept. Each share makes a separate model, which has to be compiled."""


class VocabTrimDrafter(DraftModelDrafter):
    key = "vocabtrim"
    title = "VocabTrim"
    family, shape = "chain", "chain"
    summary = "A draft model whose head keeps only the target's most frequent tokens writes ahead."
    options = (
        whole("length", 4, 1, 32).meaning("Most tokens drafted in a step."),
        number("kept", 0.25, 0.01, 1.0, "Share of the head").meaning(
            "The share of the vocabulary that the draft's head keeps, the most frequent tokens first. It is rounded "
            "to 1/64, 1/32, 1/16, 1/8, 1/4, 1/2, 3/4 or 1."
        ),
        STOP,
    )
    needs = {"draft": "draft", "vocabulary": "vocabulary"}
    trial = {"length": 2, "kept": 0.75}

    def __init__(self, settings, draft: LanguageModel, vocabulary: int, whole_bytes: int) -> None:
        """draft: the draft model with the cut head. whole_bytes: the bytes of the head before the cut."""
        super().__init__(settings, draft, vocabulary)
        self.bytes = head_bytes(draft), whole_bytes

    @classmethod
    def build(cls, settings, models):
        whole: LanguageModel = models.part("draft")
        share = rounded(settings["kept"])
        tokens = kept_tokens(models.part("vocabulary"), share, whole.vocab_size)
        own = cls(settings, with_head(whole, tokens), models.target.vocab_size, head_bytes(whole))
        own.head_tokens = tokens
        own._has = torch.zeros(models.target.vocab_size, dtype=torch.bool)
        own._has[tokens] = True
        return own

    def begin(self, start):
        super().begin(start)
        self.missing = self.written = 0  # tokens by the target: missing from the head, and all

    def propose(self, context, max_depth):
        return self._chain(context, min(self.settings["length"], max_depth), self._likely)

    def observe(self, kept):
        super().observe(kept)
        lacking = [token for token in kept.tokens if not self._has[token]]
        self.missing += len(lacking)
        self.written += len(kept.tokens)
        kept.tree.exhibits += [self._saved(), self._lacking(lacking)]

    def _saved(self) -> Gauge:
        cut, whole = self.bytes
        title = "Bytes of the draft's head"
        note = (
            f"{len(self.head_tokens):,} of {self.vocabulary:,} tokens; "
            f"{1 - cut / whole:.0%} less to read for every drafted token."
        )
        return Gauge(title, cut / 1000, maximum=whole / 1000, unit="kB", note=note)

    def _lacking(self, tokens: list[int]) -> Table:
        title = "Written by the target, but missing from the draft's head"
        note = f"{self.missing} of {self.written} tokens so far; none of them could be drafted."
        return Table(title, ["token"], [[Token(token)] for token in tokens], note=note)


def rounded(share: float) -> float:
    """Return the element of ``SHARES`` that is nearest to this share."""
    return min(SHARES, key=lambda candidate: abs(candidate - share))


def kept_tokens(vocabulary: Vocabulary, share: float, rows: int) -> Tensor:
    """Return the most frequent tokens, [K], for which a head of ``rows`` rows keeps its rows. K is this share of
    ``rows``, at least 1."""
    in_head = vocabulary.tokens[vocabulary.tokens < rows]
    return in_head[: max(1, round(share * min(rows, len(in_head))))]
