"""Bytes from a draft model with another vocabulary, each with the law from which it was drawn.

The bytes are drawn one after another from the draft model's law of the next byte: Phan et al., Exact Byte-Level
Probabilities from Tokenized Language Models (2025). The law is a sum over *covers*, the sequences of the draft model's
tokens that spell the bytes drawn so far; the last token of a cover may spell further bytes. Because each byte has a
law, the ordinary rule can judge it by p / q (``engine.methods.bytewise.rule``). OmniDraft, in contrast, compares whole
tokens, which both vocabularies must have.

The draft model is not run on improbable covers, which a beam search would drop, too. So q is not exactly the draft
model's own law of the next byte. It need not be: q only has to be the law from which the byte is drawn.

The nodes of the tree are tokens of the target. The path to a node spells a prefix of the byte string. A prefix gets a
node if it consists of the bytes of an earlier node's path (of no bytes for the root) and of one more token of the
target; if there are several such paths, the one with the fewest tokens is taken. Whether a prefix has a node depends on
the bytes of the prefix alone, so it is known before the next byte is drawn. If it depended on later bytes, these bytes
would no longer have the law by which they are judged.
"""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor

from engine.core.drafter import Drafter
from engine.core.options import whole
from engine.core.sampling import likeliest
from engine.core.tree import ROOT, DraftTree
from engine.methods.bytewise.covers import Covers, Ended
from engine.methods.bytewise.judged_letters import DrawnString
from engine.methods.bytewise.letters import Vocabulary, vocabularies
from engine.methods.shared.draft_model import DraftReader, stop_option
from engine.methods.shared.spelling import BYTES, ForeignDraft

LEAST = 0.05
"""The draft model is run on a cover whose last token has just ended only if this cover has at least this share of the
weight of all covers."""


class BytewiseDrafter(Drafter):
    key = "bytewise"
    title = "Byte by byte"
    family, shape = "chain", "spelled"
    summary = "A draft model with another vocabulary; target and draft are compared byte by byte."
    draw_kinds = ("one_hot",)
    default_verifier = "bytewise"
    options = (
        whole("length", 20, 1, 64).meaning("Bytes drafted in a step."),
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
        self._count = 0  # number of context tokens that ``_text`` has
        self._read: dict[tuple[int, int], int] = {}
        """(number of the token before, token) -> number of the token, for the tokens over which the draft model was run
        in this step. The tokens are numbered from 0 in the order of these runs."""

    def propose(self, context, max_depth):
        self._text += self._spelling.spelled(context[self._count :])
        self._count = len(context)
        tree, self._read = DraftTree(), {}
        length = self.settings["length"]
        if self._text and len(self._text) + length <= self._model.max_context:
            self._draft_string(tree, length, max_depth)
        return tree

    def _draft_string(self, tree: DraftTree, length: int, max_depth: int) -> None:
        letters, laws, chances, place_at = [], [], [], {0: ROOT}
        row = self._reader.read(self._text)
        covers, picks = Covers(self._draft, ROOT, row), self._picks(row)
        while covers.mass > 0:
            law = covers.law()
            letters.append(picks.pop(0) if self.sampling.greedy else self.chance.draw(law))
            laws.append(law)
            chances.append(float(law[letters[-1]]))
            self._add(tree, letters, chances, place_at, max_depth)
            rare = self.sampling.greedy and prod(chances) < self.settings["stop_below"]
            if len(letters) == length or letters[-1] >= BYTES or rare:
                break
            ended = covers.go(letters[-1])
            if not self.sampling.greedy:
                total = covers.mass + sum(cover.weight for cover in ended)
                self._open(covers, [cover for cover in ended if cover.weight >= LEAST * total])
            elif not picks:
                last = max(self._read.values(), default=ROOT)  # where the picked token began
                picked = [cover for cover in ended if cover.place == last]
                picks = self._picks(self._open(covers, picked[:1])[0])
        tree.aside = DrawnString(self._target, letters, torch.stack(laws))

    def _picks(self, law: Tensor) -> list[int]:
        """Return the letters of the draft model's likeliest token; in greedy decoding these letters are drafted."""
        return list(self._draft.strings[likeliest(law)])

    def _open(self, covers: Covers, ended: list[Ended]) -> list[Tensor]:
        """Let the covers go on with a next token: run the draft model over the last token of each cover, and give
        ``covers`` the law of the token after it. ended: covers whose last token ends with the last byte drawn so far.
        Returns, for each cover, the law of its next token."""
        if not ended:
            return []
        places, tokens = [cover.place for cover in ended], [cover.token for cover in ended]
        numbers = range(len(self._read), len(self._read) + len(ended))
        self._read |= zip(zip(places, tokens, strict=True), numbers, strict=True)
        laws = self._reader.expand(numbers, tokens, places)
        for number, cover, law in zip(numbers, ended, laws, strict=True):
            covers.open(number, cover.weight, law)
        return list(laws)

    def _add(
        self, tree: DraftTree, letters, chances, place_at: dict[int, int], max_depth: int
    ) -> None:
        """Add a node at the end of the letters drawn so far. This is possible if the path to an existing node spells
        the first of these letters (the root spells none), and a single token of the target spells the others. If
        several nodes could be the parent, the one nearest to the root is taken."""
        ways = []
        for start, place in place_at.items():
            token = self._target.token_of.get(tuple(letters[start:]))
            depth = 0 if place == ROOT else tree.depths[place]
            if token is not None and depth < max_depth:
                ways.append((depth, start, place, token))
        if ways:
            _, start, parent, token = min(ways)
            place_at[len(letters)] = tree.draw(
                parent, token, source="draft model", q=prod(chances[start:])
            )

    def observe(self, kept):
        *written, _ = self._spelling.spelled(kept.tokens)  # the last token has yet to be read
        path, place = [], ROOT
        for token in written:
            place = self._read.get((place, token))
            if place is None:
                break
            path.append(place)
        self._reader.keep(path)

    def passes(self):
        return {"draft": self._reader.passes}
