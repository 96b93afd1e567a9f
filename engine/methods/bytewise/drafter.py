"""A chain from a draft model with another vocabulary, handed over as bytes, each with the law from which it came.

The draft's tokens are drawn one after another, and each is a string of bytes. Given all that the draft had drawn before, a
byte comes from a known law: that of the next byte of a token that begins with the bytes so far. So the ordinary rule can
judge each byte by p / q (``engine.methods.bytewise.rule``), where OmniDraft compares whole tokens and needs tokens that both
vocabularies have. The laws of bytes are those of Phan et al., Exact Byte-Level Probabilities from Tokenized Language Models
(2025); they sum over all tokens that cover a text's end. Here the target itself says, byte by byte, whether its token ends,
so the text has the law of plain decoding, not only where it is cut as a tokenizer would cut it.

The tree spells the drafted string in the target's tokens. Behind each token of the draft it may get one node: whether it
does, and where, is known before the next byte is drawn. Otherwise the byte would not have the law that it is judged by.
"""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor

from engine.core.drafter import Drafter
from engine.core.options import whole
from engine.core.sampling import likeliest
from engine.core.tree import ROOT, DraftTree
from engine.methods.bytewise.letters import DrawnString, Vocabulary, vocabularies
from engine.methods.shared.draft_model import DraftReader, stop_option
from engine.methods.shared.spelling import BYTES, ForeignDraft


class BytewiseDrafter(Drafter):
    key = "bytewise"
    title = "Byte by byte"
    family, shape = "chain", "spelled"
    summary = "A draft model with another vocabulary; target and draft are compared byte by byte."
    draw_kinds = ("one_hot",)
    default_verifier = "bytewise"
    options = (
        whole("length", 6, 1, 32).meaning("Tokens of the draft model in a step."),
        stop_option(
            0.25, "Draft no further when the chance of the drafted string falls below this"
        ),
    )
    needs = {"omnidraft": "foreign_draft"}
    trial = {"length": 2, "stop_below": 0.0}

    def __init__(
        self, settings, part: ForeignDraft, vocabularies: tuple[Vocabulary, Vocabulary]
    ) -> None:
        super().__init__(settings)
        self._model, self._spelling = part.model, part.spelling
        self._target, self._draft = vocabularies
        self.max_context = part.model.max_context

    @classmethod
    def build(cls, settings, models):
        part = models.part("omnidraft")
        return cls(settings, part, vocabularies(part.spelling))

    def begin(self, start):
        super().begin(start)
        self._reader = DraftReader(self._model, self._model.vocab_size, self.sampling)
        self._text: list[int] = []  # the context in the draft's tokens
        self._count = 0  # context tokens already in it
        self._drawn: list[int] = []

    def propose(self, context, max_depth):
        self._text += self._spelling.spelled(context[self._count :])
        self._count = len(context)
        tree, self._drawn = DraftTree(), []
        length = self.settings["length"]
        if self._text and len(self._text) + length <= self._model.max_context:
            self._draft_string(tree, length, max_depth)
        return tree

    def _draft_string(self, tree: DraftTree, length: int, max_depth: int) -> None:
        letters: list[int] = []
        laws: list[Tensor] = []
        place_at, chances = {0: ROOT}, []
        q = self._reader.read(self._text)
        while True:
            token = likeliest(q) if self.sampling.greedy else self.chance.draw(q)
            self._drawn.append(token)
            chances.append(float(q[token]))
            letters += self._draft.strings[token]
            laws.append(self._draft.laws(q.double(), token))
            self._add(tree, letters, torch.cat(laws), place_at, max_depth)
            last = len(self._drawn)
            if last == length or letters[-1] >= BYTES:
                break
            if self.sampling.greedy and prod(chances) < self.settings["stop_below"]:
                break
            q = self._reader.expand([last - 1], [token], [last - 2 if last > 1 else ROOT])[0]
        ends = {node: end for end, node in place_at.items()}
        tree.aside = DrawnString(
            self._target, letters, torch.cat(laws), [ends[node] for node in range(len(tree))]
        )

    def _add(
        self, tree: DraftTree, letters, laws: Tensor, place_at: dict[int, int], max_depth: int
    ) -> None:
        """Put a node where the letters so far end, if one token of the target leads there from a node before: from the one
        nearest to the root."""
        ways = []
        for start, place in place_at.items():
            token = self._target.token_of.get(tuple(letters[start:]))
            depth = 0 if place == ROOT else tree.depths[place]
            if token is not None and depth < max_depth:
                ways.append((depth, start, place, token))
        if ways:
            _, start, parent, token = min(ways)
            chance = float(laws[range(start, len(letters)), letters[start:]].prod())
            place_at[len(letters)] = tree.draw(parent, token, source="draft model", q=chance)

    def observe(self, kept):
        written, read = self._spelling.spelled(kept.tokens), 0
        most = min(len(written) - 1, len(self._drawn))  # the last token has yet to be read
        while read < most and written[read] == self._drawn[read]:
            read += 1
        self._reader.keep(range(read))

    def passes(self):
        return {"draft": self._reader.passes}
