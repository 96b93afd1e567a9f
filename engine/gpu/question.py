"""What a pass of the target is asked beside logits, the verdict on its tree, and what it answers."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from engine.kernels.flat_tree import Places
from engine.sampling import Sampling
from engine.tree import DraftTree


@dataclass(frozen=True)
class Law:
    """By what trees of a text are judged, whatever its seed: passes with a verdict are known by it.

    rule: of the verifier. sampling: with seed 0. kinds: of proposal that the drafter makes.
    """

    rule: str
    sampling: Sampling
    kinds: frozenset[str]

    @property
    def greedy(self) -> bool:
        return self.sampling.greedy

    @property
    def draws(self) -> bool:
        """Whether proposals come with the distributions they were drawn from."""
        return self.rule == "rejection" and bool(self.kinds - {"one_hot"})

    @property
    def strikes(self) -> bool:
        """Whether refused draws are struck out of these."""
        return self.draws and "without_replacement" in self.kinds


@dataclass(frozen=True)
class Question:
    """One tree to be judged.

    places: of the tree. coins: as many as there are draws, where the rule tosses any. noise: [D, V]
    on the device, of the depths there are, where the rule draws tokens.
    """

    law: Law
    places: Places
    coins: list[float]
    noise: Tensor | None

    def of_nothing(self) -> "Question":
        """The same law, and no draft."""
        return Question(self.law, Places.of(DraftTree()), [], None)


@dataclass(frozen=True)
class Draft:
    """What a text gives to a pass. position: where the first drafted token would stand in it.
    question: None where the host judges."""

    root: int
    tree: DraftTree
    position: int
    question: Question | None

    @property
    def rows(self) -> tuple[list[int], list[int]]:
        """Tokens, and the row of each one's parent or -1: the root in row 0, node i in row i + 1."""
        return [self.root, *self.tree.tokens], [-1] + [parent + 1 for parent in self.tree.parents]


@dataclass(frozen=True)
class Looked:
    """What a pass of the target over root (row 0) and tree (node i in row i + 1) gave.

    logits: [N + 1, V]; features: [N + 1, n*H] or None.
    numbers: where the pass has judged its tree and moved the kept rows into their place, waits for
    the verdict's (see ``DeviceVerdict``). Then row i of features is that of the i-th kept row, as
    far as there are any, and logits hold until the model's next pass only.
    """

    logits: Tensor
    features: Tensor | None
    numbers: Callable[[], list[int]] | None = None

    def kept(self, rows: list[int]) -> list[int]:
        """Where these rows, the root and the kept path, stand by now."""
        return rows if self.numbers is None else list(range(len(rows)))
