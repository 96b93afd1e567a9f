"""Speculative Jacobi decoding: the target drafts for itself, and a window of drafts is drawn anew in each pass.

Teng et al., Accelerating Auto-regressive Text-to-Image Generation with Training-free Speculative Jacobi
Decoding (2024). Jacobi decoding takes the target's choices of one pass as the guesses of the next; with
chance it would never come to rest. Here each place of the window keeps the distribution that the last
pass gave there, after the guesses of then. The next guess is drawn from it and judged with it as q: kept with probability
min(1, p_new / p_old).

All guesses that were not kept are drawn anew in each pass, those behind a refused token too, so the law
that is handed over is the one that a guess was drawn from, and the output stays the target's.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.drafters.base import Drafter
from engine.exhibits import Table, Token
from engine.options import Option
from engine.sampling import distribution
from engine.tree import ROOT, DraftTree

FIRST, REDRAWN = "first guess", "last pass"


@dataclass
class Place:
    """A place of the window. law: [V] that the last pass gave there; None before its first pass. passes: that it was
    in. moved: how far the last pass moved its law, as a share of the probability; None before there were two."""

    law: Tensor | None = None
    passes: int = 0
    moved: float | None = None

    def learn(self, law: Tensor) -> None:
        self.moved = None if self.law is None else float((law - self.law).clamp(min=0).sum())
        self.law, self.passes = law, self.passes + 1


class SpeculativeJacobiDrafter(Drafter):
    key = "sjd"
    title = "Speculative Jacobi"
    family = "self"
    summary = "Draws a window of guesses from what the target gave in its last pass, and judges them by the next."
    options = (
        Option("window", "int", 16, "Places guessed ahead.", 1, 64, label="Window"),
        Option(
            "fill",
            "choice",
            "repeat",
            "First guess of a new place: the last token again, a random token of the prompt, or a random "
            "token of the vocabulary.",
            choices=("repeat", "prompt", "vocabulary"),
            label="First guesses",
        ),
    )
    trial = {"window": 2}

    @classmethod
    def build(cls, settings, models):
        drafter = cls(settings)
        drafter._vocabulary = models.target.vocab_size
        return drafter

    @classmethod
    def kinds(cls, sampling):
        return frozenset({"one_hot"} if sampling.greedy else {"one_hot", "iid"})

    def begin(self, start):
        super().begin(start)
        self._prompt = list(start.prompt)
        self._first = len(self._prompt)  # position of the window's first token in the text
        self._window: list[Place] = []

    def propose(self, context, max_depth):
        self._move(len(context))
        while len(self._window) < self.settings["window"]:
            self._window.append(Place())
        text, tree, parent = list(context), DraftTree(), ROOT
        for place in self._window[:max_depth]:
            parent = self._guess(tree, parent, place, text)
            text.append(tree.tokens[parent])
        tree.exhibits.append(self._table(tree, len(context)))
        return tree

    def observe(self, kept):
        """Row i of the logits is the target's word on place i of the window, after the guesses before it."""
        written = len(kept.tokens)
        self._move(kept.position + written)
        logits = kept.logits[written:]
        looked = logits[~logits.isnan().any(-1)]
        while len(self._window) < len(looked):
            self._window.append(Place())
        for place, law in zip(self._window, distribution(looked, self.sampling).cpu(), strict=False):
            place.learn(law)

    def _move(self, position: int) -> None:
        """Drop the places that the text has reached."""
        del self._window[: position - self._first]
        self._first = position

    def _guess(self, tree: DraftTree, parent: int, place: Place, text: list[int]) -> int:
        """Draw the place's next guess under ``parent``; returns its node. text: all tokens before it."""
        if place.law is None:
            return tree.draw(parent, self._first_guess(text), source=FIRST)
        if self.sampling.greedy:
            return tree.draw(parent, int(place.law.argmax()), source=REDRAWN)
        return tree.draw(parent, self.chance.draw(place.law), "iid", place.law, REDRAWN)

    def _first_guess(self, text: list[int]) -> int:
        match self.settings["fill"]:
            case "prompt":
                return self._prompt[self.chance.draw(torch.ones(len(self._prompt)))]
            case "vocabulary":
                return self.chance.draw(torch.ones(self._vocabulary))
        return text[-1]

    def _table(self, tree: DraftTree, position: int) -> Table:
        """The window: how old each place is, and whether its law has come to rest."""
        rows = [
            [position + at, Token(tree.tokens[at]), tree.q[at], place.passes, place.moved]
            for at, place in enumerate(self._window[: len(tree)])
        ]
        still = sum(place.moved is not None and place.moved < 0.1 for place in self._window)
        return Table(
            title="Window of guesses",
            note=f"In {still} of {len(rows)} places the last pass moved less than a tenth of the probability.",
            columns=["Position", "Guess", "q", "Passes", "Moved by the last pass"],
            rows=rows,
        )
