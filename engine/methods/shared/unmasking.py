"""Fills a block of masks in several passes of a denoiser; a policy chooses which positions are filled after each pass.

A policy gets the probabilities at all positions and the tokens filled in so far. It names the positions to fill now,
each with a reason in a few words for the page. At least one position is filled in each pass, so the filling comes to an
end.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from torch import Tensor

from engine.core.exhibits import Table, Token
from engine.core.options import Option, number, whole
from engine.core.tree import ROOT, DraftTree
from engine.methods.shared.block_drafter import DiffusionDrafter


@dataclass(frozen=True)
class Fill:
    """A filled position of a canvas. confidence: the probability of the token. turn: the index, from 0, of the pass
    after which the position was filled. why: the policy's reason."""

    place: int
    token: int
    confidence: float
    turn: int
    why: str = ""


@dataclass
class Canvas:
    """A block that is being filled: the positions 0 .. length - 1 after the root, and their fills.

    ends: the tokens that end a text; the canvas is cut after the first of them that is filled in. guesses: for each
    pass, the likeliest token of every position that was not filled before this pass.
    """

    length: int
    ends: frozenset[int] = frozenset()
    filled: dict[int, Fill] = field(default_factory=dict)
    guesses: list[dict[int, int]] = field(default_factory=list)

    @property
    def turns(self) -> int:
        """The number of passes so far."""
        return len(self.guesses)

    @property
    def open(self) -> list[int]:
        return [place for place in range(self.length) if place not in self.filled]

    @property
    def tokens(self) -> Mapping[int, int]:
        return {place: fill.token for place, fill in self.filled.items()}

    def cut(self, length: int) -> None:
        """Drop all positions except for the first ``length``."""
        self.length = min(length, self.length)
        self.filled = {place: fill for place, fill in self.filled.items() if place < self.length}

    def fill(self, probabilities: Tensor, chosen: Mapping[int, str]) -> None:
        """Record a pass: fill each chosen position with its likeliest token. probabilities: [length, V]. chosen:
        position -> reason."""
        values, tokens = (part.tolist() for part in probabilities.max(-1))
        turn = self.turns
        self.guesses.append({place: tokens[place] for place in self.open})
        for place, why in chosen.items():
            self.filled[place] = Fill(place, tokens[place], values[place], turn, why)
        ended = [place for place, fill in self.filled.items() if fill.token in self.ends]
        if ended:
            self.cut(min(ended) + 1)


class Unmasking(ABC):
    """A policy for one canvas. It may store values from one pass to the next."""

    def weigh(self, probabilities: Tensor, canvas: Canvas) -> Tensor:
        """Return the probabilities [length, V] by which positions and tokens are chosen. A policy may correct the
        probabilities of the pass; the default returns them as they are."""
        return probabilities

    def end(self, probabilities: Tensor, canvas: Canvas) -> int:
        """Return how many positions of the canvas are kept, counted from the first; at least one. The default keeps
        all."""
        return canvas.length

    @abstractmethod
    def choose(self, probabilities: Tensor, canvas: Canvas) -> dict[int, str]:
        """Return the positions to fill now, at least one, as position -> reason. Only positions that are not filled yet
        may be chosen. probabilities: [length, V]."""


def fill_in(canvas: Canvas, policy: Unmasking, read: Callable[[Canvas], Tensor], most: int) -> None:
    """Fill a canvas in at most ``most`` passes; the last of them fills all positions that are still open. read: a
    function that makes one pass over the canvas in its current state, and returns the probabilities [length, V]."""
    while canvas.open:
        probabilities = policy.weigh(read(canvas), canvas)
        canvas.cut(policy.end(probabilities, canvas))
        if canvas.turns + 1 >= most:
            chosen = dict.fromkeys(canvas.open, "last pass")
        else:
            chosen = policy.choose(probabilities, canvas)
        canvas.fill(probabilities, chosen)


def surest(sure: Mapping[int, float]) -> dict[int, str]:
    """Return the position with the highest confidence, as {position: reason}; in a tie, the first one. Policies fill
    this position if no position is confident enough. sure: position -> confidence."""
    return {max(sure, key=lambda place: sure[place]): "surest place"}


def open_confidence(probabilities: Tensor, canvas: Canvas) -> dict[int, float]:
    """Return, for each position that is not filled yet, the probability of its likeliest token: position ->
    probability."""
    values = probabilities.max(-1).values.tolist()
    return {place: values[place] for place in canvas.open}


@dataclass
class Confident(Unmasking):
    """A policy that fills every position whose likeliest token has at least the probability ``threshold``. If no
    position reaches it, the position with the highest probability is filled.

    Confident decoding of Dimple (Yu et al., 2025).
    """

    threshold: float

    def choose(self, probabilities: Tensor, canvas: Canvas) -> dict[int, str]:
        sure = open_confidence(probabilities, canvas)
        chosen = [place for place in sure if sure[place] >= self.threshold]
        return dict.fromkeys(chosen, f"confidence {self.threshold:g}") or surest(sure)


LENGTH = whole("length", 7, 1, 31, "Length").meaning("Tokens drafted in each step.")
PASSES = whole("passes", 3, 1, 16, "Passes").meaning("Most denoising passes in a step.")


def threshold(default: float = 0.9) -> Option:
    """Return the option ``threshold``: a position is filled if its likeliest token has at least this probability."""
    help_text = "A place is filled once its likeliest token has this probability."
    return number("threshold", default, 0.0, 1.0, "Confidence").meaning(help_text)


class UnmaskingDrafter(DiffusionDrafter):
    """Base class of block drafters that fill a block in several passes. Subclasses have different policies and
    different end tokens."""

    draw_kinds = ("one_hot",)
    options = (LENGTH, PASSES)
    trial = {"length": 2, "passes": 2}
    ends: frozenset[int] = frozenset()
    """The end tokens: a block is cut after the first of them that is filled in."""

    @abstractmethod
    def policy(self) -> Unmasking:
        """Return a new policy for the next block."""

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
    """Return the table of a canvas, with a row for each position: when and why it was filled, and the likeliest tokens
    there in the passes before."""
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
    note = "A guess was not filled in yet: it could still change in the light of the filled places."
    columns = ["place", "token", "filled in pass", "confidence", "why", *guesses]
    return Table("Order of filling", columns, rows, note=note)
