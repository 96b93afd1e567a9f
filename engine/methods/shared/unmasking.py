"""A block filled in several denoising passes. A policy says after each pass which places are filled now.

The block is one chain of likeliest tokens, judged one-hot, so it is exact whatever the policy looks at.
"""

from abc import abstractmethod

from engine.core.exhibits import Table, Token
from engine.core.options import Option, number, whole
from engine.core.tree import ROOT, DraftTree
from engine.methods.shared.block_drafter import DiffusionDrafter
from engine.methods.shared.unmasking_order import Canvas, Unmasking, fill_in

LENGTH = whole("length", 7, 1, 31, "Length").meaning("Tokens drafted in each step.")
PASSES = whole("passes", 3, 1, 16, "Passes").meaning("Most denoising passes in a step.")


def threshold(default: float = 0.9) -> Option:
    """The confidence with which a place is filled."""
    told = "A place is filled once its likeliest token has this probability."
    return number("threshold", default, 0.0, 1.0, "Confidence").meaning(told)


class UnmaskingDrafter(DiffusionDrafter):
    """Methods differ in their policy, and in where their canvas ends."""

    draw_kinds = ("one_hot",)
    options = (LENGTH, PASSES)
    trial = {"length": 2, "passes": 2}
    ends: frozenset[int] = frozenset()
    """Tokens behind which nothing is filled."""

    @abstractmethod
    def policy(self) -> Unmasking:
        """A fresh policy for the next block."""

    def propose(self, context, max_depth):
        canvas = Canvas(self._length(max_depth), self.ends)

        def read(canvas: Canvas):
            root, tokens = context[-1], canvas.tokens
            return self._reader.marginals(root, canvas.length, self.sampling, tokens).cpu()

        fill_in(canvas, self.policy(), read, self.settings["passes"])
        tree, parent = DraftTree(), ROOT
        for place in range(canvas.length):
            fill = canvas.filled[place]
            source = f"pass {fill.turn + 1}"
            parent = tree.draw(parent, fill.token, source=source, q=fill.confidence)
        tree.exhibits.append(canvas_shown(canvas))
        return tree


def canvas_shown(canvas: Canvas) -> Table:
    """The canvas pass by pass: when and why each place was filled, and the guesses for it until then."""
    rows = []
    for place in range(canvas.length):
        fill = canvas.filled[place]
        guessed = [guess.get(place) for guess in canvas.guesses[: fill.turn]]
        before = [None if token is None else Token(token) for token in guessed]
        empty = [None] * (canvas.turns - 1 - len(before))
        rows.append(
            [
                place + 1,
                Token(fill.token),
                fill.turn + 1,
                fill.confidence,
                fill.why,
                *before,
                *empty,
            ]
        )
    guesses = [f"guess in pass {turn + 1}" for turn in range(canvas.turns - 1)]
    return Table(
        title="Order of filling",
        note="A guess was not filled in yet: it could still change in the light of the filled places.",
        columns=["place", "token", "filled in pass", "confidence", "why", *guesses],
        rows=rows,
    )
