"""Which open places of a canvas are filled after a pass of the denoiser.

A policy sees the probabilities of all places and everything filled before, and names the places to fill now, each with
a reason in a few words. At least one place is filled in each pass, so that the denoiser comes to an end.
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
    """A filled place of the canvas: its token, the token's probability, the pass that filled it, and why."""

    place: int
    token: int
    confidence: float
    turn: int
    why: str = ""


@dataclass
class Canvas:
    """The places 0 .. length - 1 after the root, and their fills.

    ends: tokens that end a text; the canvas is cut after the first one that is filled in. guesses: for each pass the
    likeliest token of every place that was open then.
    """

    length: int
    ends: frozenset[int] = frozenset()
    filled: dict[int, Fill] = field(default_factory=dict)
    guesses: list[dict[int, int]] = field(default_factory=list)

    @property
    def turns(self) -> int:
        """Passes so far."""
        return len(self.guesses)

    @property
    def open(self) -> list[int]:
        return [place for place in range(self.length) if place not in self.filled]

    @property
    def tokens(self) -> Mapping[int, int]:
        return {place: fill.token for place, fill in self.filled.items()}

    def cut(self, length: int) -> None:
        """Keep only the first ``length`` places."""
        self.length = min(length, self.length)
        self.filled = {place: fill for place, fill in self.filled.items() if place < self.length}

    def fill(self, probabilities: Tensor, chosen: Mapping[int, str]) -> None:
        """Put the likeliest token into each of these places. probabilities: [length, V]. chosen: place -> why."""
        values, tokens = (part.tolist() for part in probabilities.max(-1))
        turn = self.turns
        self.guesses.append({place: tokens[place] for place in self.open})
        for place, why in chosen.items():
            self.filled[place] = Fill(place, tokens[place], values[place], turn, why)
        ended = [place for place, fill in self.filled.items() if fill.token in self.ends]
        if ended:
            self.cut(min(ended) + 1)


class Unmasking(ABC):
    """A policy for one canvas; it may keep state from pass to pass."""

    def weigh(self, probabilities: Tensor, canvas: Canvas) -> Tensor:
        """The probabilities [length, V] by which places and tokens are chosen: those of the pass, unless the policy
        corrects them."""
        return probabilities

    def end(self, probabilities: Tensor, canvas: Canvas) -> int:
        """How many places the canvas keeps, at least one."""
        return canvas.length

    @abstractmethod
    def choose(self, probabilities: Tensor, canvas: Canvas) -> dict[int, str]:
        """The open places to fill now, at least one, each with its reason. probabilities: [length, V]."""


def fill_in(canvas: Canvas, policy: Unmasking, read: Callable[[Canvas], Tensor], most: int) -> None:
    """Fill a canvas within ``most`` passes; the last one fills everything that is left. read: makes one pass over the
    canvas as it stands -> probabilities [length, V]."""
    while canvas.open:
        probabilities = policy.weigh(read(canvas), canvas)
        canvas.cut(policy.end(probabilities, canvas))
        if canvas.turns + 1 >= most:
            chosen = dict.fromkeys(canvas.open, "last pass")
        else:
            chosen = policy.choose(probabilities, canvas)
        canvas.fill(probabilities, chosen)


def surest(sure: Mapping[int, float]) -> dict[int, str]:
    """The place of the highest number, or the first in a tie. It is filled if no place is sure enough."""
    return {max(sure, key=lambda place: sure[place]): "surest place"}


def open_confidence(probabilities: Tensor, canvas: Canvas) -> dict[int, float]:
    """The probability of the likeliest token of each open place."""
    values = probabilities.max(-1).values.tolist()
    return {place: values[place] for place in canvas.open}


@dataclass
class Confident(Unmasking):
    """Every place whose likeliest token has at least this probability, or else the surest place.

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
    note = "A guess was not filled in yet: it could still change in the light of the filled places."
    columns = ["place", "token", "filled in pass", "confidence", "why", *guesses]
    return Table("Order of filling", columns, rows, note=note)
