"""Speculative Jacobi decoding: the tokens of the window of Jacobi decoding are drawn instead of picked.

Teng et al., "Accelerating Auto-regressive Text-to-Image Generation with Training-free Speculative Jacobi Decoding"
(2024). Each token of the window was drawn from p_old: the target's distribution at its position in the previous pass,
given the guesses of that pass. The current pass gives p_new at the same position, given tokens that are closer to the
final ones. The token is accepted with probability p_new / p_old, at most 1; if it is rejected, another token is drawn
from the residual of p_new. This is rejection sampling in which q is the target's own previous distribution.

All positions after a rejected token are drawn anew from the latest distributions. If their old tokens stayed, each
would later be judged by a distribution from which it was not drawn, and the output would not follow the target's law.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.core.exhibits import Table, Token
from engine.core.sampling import display_distribution
from engine.core.tree import DraftTree
from engine.methods.shared.guessed_window import SHOWN, GuessedWindow, Place


@dataclass
class DrawnPlace(Place):
    """A position of the window. law: [V], the distribution from which its next token is drawn. change: the total
    variation between its last two distributions; None until it has had two."""

    law: Tensor | None = None
    change: float | None = None

    @property
    def fresh(self) -> bool:
        """Whether the target has not yet given a distribution for this position."""
        return self.source == "first guess"

    def take(self, law: Tensor) -> None:
        if self.law is not None:
            self.change = 0.5 * float((law - self.law).abs().sum())
        self.law, self.source = law, "target's last law"


class SpeculativeJacobiDrafter(GuessedWindow):
    key = "sjd"
    title = "Speculative Jacobi"
    summary = "Draws a window of tokens from the target's own laws of the pass before."
    draw_kinds = ("iid",)

    def _new_place(self, root):
        return DrawnPlace(law=self._first_law(root))

    def _draw(self, tree: DraftTree, parent: int, place: DrawnPlace) -> int:
        """Draw the token of a position anew, and add it to the tree. At temperature 0 the likeliest token is taken, as
        in ``jacobi``; but at a position for which the target has given no distribution yet, the token is drawn even
        then."""
        picked = self.sampling.greedy and not place.fresh
        token = int(place.law.argmax()) if picked else self.chance.draw(place.law)
        place.guesses.append(token)
        kind = "one_hot" if self.sampling.greedy else "iid"
        return tree.draw(parent, token, kind, place.law, place.source)

    def _mend(self, logits: Tensor) -> None:
        laws = display_distribution(logits, self.sampling).cpu()
        if len(laws) > len(self._window):
            self._window.append(DrawnPlace())
        for place, law in zip(self._window, laws, strict=False):
            place.take(law)

    def _first_law(self, root: int) -> Tensor:
        """Return the first distribution [V] of a new position. By the option ``fill`` it covers the prompt's tokens or
        all tokens uniformly, or puts all probability on the root."""
        law = torch.zeros(self._vocabulary)
        match self.settings["fill"]:
            case "prompt":
                law.index_add_(0, torch.tensor(self._prompt), torch.ones(len(self._prompt)))
            case "vocabulary":
                law += 1
            case _:
                law[root] = 1
        return law / law.sum()

    def _table(self) -> Table:
        """Return the table of the window, which also shows by how much the distribution at each position changed in the
        last pass."""
        rows = []
        for position, place in enumerate(self._window, start=self._first):
            latest = [Token(guess) for guess in reversed(place.guesses[-SHOWN:])]
            empty = [None] * (SHOWN - len(latest))
            rows.append([position, *latest, *empty, place.change])
        changes = [place.change for place in self._window if place.change is not None]
        mean = f"{sum(changes) / len(changes):.2f}" if changes else "not known yet"
        before = [f"{passes} before" for passes in range(1, SHOWN)]
        note = (
            f"Change of the laws in the last pass, as total variation: {mean} in the mean; at 0 the window has "
            "come to rest."
        )
        columns = ["Position", "Draw", *before, "Change of its law"]
        return Table("Window of draws", columns, rows, note=note)
