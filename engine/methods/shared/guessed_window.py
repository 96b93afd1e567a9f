"""Jacobi decoding: the target improves a window of guessed tokens, all positions at once.

Santilli et al., Accelerating Transformer Inference for Translation via Parallel Decoding (2023): the next W tokens are
unknowns, and each must be the target's choice after the tokens before it. First all W tokens are guessed. Then one pass
of the target gives its choice at every position, and these choices are the next guesses. This is repeated until nothing
changes (a fixed point). Each pass corrects at least the first wrong guess, because all guesses before it were right. As
in the baseline of Lookahead decoding (Fu et al., 2024), the window moves on with the text instead of waiting for a
whole block.
"""

import itertools
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.core.drafter import Drafter
from engine.core.exhibits import Table, Token
from engine.core.options import choice, whole
from engine.core.sampling import likeliest
from engine.core.tree import ROOT, DraftTree

SHOWN = 4  # passes whose guesses the table shows


@dataclass
class Place:
    """A position of the window. guesses: all tokens guessed for this position so far, the latest last. source: where
    the latest guess comes from."""

    guesses: list[int] = field(default_factory=list)
    source: str = "first guess"

    def guess(self, token: int) -> None:
        self.guesses.append(token)
        self.source = "target's choice"

    @property
    def calm(self) -> int:
        """The number of passes of the target since the latest guess last changed."""
        run = itertools.takewhile(lambda guess: guess == self.guesses[-1], reversed(self.guesses))
        return sum(1 for _ in run) - 1


class GuessedWindow(Drafter):
    family = "self"
    draw_kinds = ("one_hot",)
    options = (
        whole("window", 5, 1, 64, "Window").meaning("Tokens guessed ahead."),
        choice("fill", "prompt", ("prompt", "vocabulary", "repeat"), "First guesses").meaning(
            "First guess of a new place: a random token of the prompt, a random token of the "
            "vocabulary, or the last token again (the paper pads)."
        ),
    )
    trial = {"window": 2}

    @classmethod
    def build(cls, settings, models):
        drafter = cls(settings)
        drafter._vocabulary = models.target.vocab_size
        return drafter

    def begin(self, start):
        super().begin(start)
        self._prompt = list(start.prompt)
        self._first = len(self._prompt)  # position of the window's first token in the text
        self._window: list[Place] = []

    def propose(self, context, max_depth):
        self._move(len(context))
        while len(self._window) < self.settings["window"]:
            self._window.append(self._new_place(context[-1]))
        tree, parent = DraftTree(), ROOT
        for place in self._window[:max_depth]:
            parent = self._draw(tree, parent, place)
        tree.exhibits.append(self._table())
        return tree

    def _new_place(self, root: int) -> Place:
        return Place([self._first_guess(root)])

    def _draw(self, tree: DraftTree, parent: int, place: Place) -> int:
        """Add the latest guess of ``place`` to the tree as a child of ``parent``; returns the new node."""
        return tree.draw(parent, place.guesses[-1], source=place.source)

    def observe(self, kept):
        """Set the next guess of every position in the window to the choice that the target made there in this step's
        pass. Then drop the positions that the text has reached."""
        self._move(kept.position)
        self._mend(kept.logits)
        self._move(kept.position + len(kept.tokens))

    def _mend(self, logits: Tensor) -> None:
        """Set the latest guess of each position to the target's choice. logits: [N + 1, V]; row i belongs to position i
        of the window."""
        choices = likeliest(logits)
        if len(choices) > len(self._window):
            self._window.append(Place())
        for place, token in zip(self._window, choices, strict=False):
            place.guess(token)

    def _move(self, position: int) -> None:
        """Drop the positions of the window that lie before ``position`` in the text."""
        del self._window[: position - self._first]
        self._first = position

    def _first_guess(self, root: int) -> int:
        match self.settings["fill"]:
            case "prompt":
                return self._prompt[self.chance.draw(torch.ones(len(self._prompt)))]
            case "vocabulary":
                return self.chance.draw(torch.ones(self._vocabulary))
        return root

    def _table(self) -> Table:
        """Return the table of the window: a row for each position, with the guesses of the last passes. Equal guesses
        in a row mean that the guess no longer changes."""
        rows = []
        for position, place in enumerate(self._window, start=self._first):
            latest = [Token(guess) for guess in reversed(place.guesses[-SHOWN:])]
            rows.append([position, *latest, *[None] * (SHOWN - len(latest)), place.calm])
        still = sum(place.calm > 0 for place in self._window)
        before = [f"{passes} before" for passes in range(1, SHOWN)]
        note = f"{still} of {len(rows)} guesses stayed the same in the last pass."
        columns = ["Position", "Guess", *before, "Passes unchanged"]
        return Table("Window of guesses", columns, rows, note=note)
