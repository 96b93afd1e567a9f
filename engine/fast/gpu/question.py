"""The question that asks a pass of the target for the verdict on its tree, and the answer."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from engine.core.sampling import Sampling
from engine.core.seen import Draft, Seen
from engine.core.tree import DraftTree
from engine.fast.kernels.flat_tree import Places


@dataclass(frozen=True)
class JudgingKey:
    """How the trees of a text are judged, whatever its seed. Passes with a verdict are found by this key.

    rule: the verifier's. sampling: with seed 0. kinds: the kinds of draw that the drafter makes.
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
        """Whether refused draws are struck out of these distributions."""
        return self.draws and "without_replacement" in self.kinds


@dataclass(frozen=True)
class Question:
    """A tree for the device to judge.

    places: of the tree. coins: one per draw, if the rule tosses coins. noise: [D, V] on the device,
    one row per depth, if the rule draws tokens.
    """

    key: JudgingKey
    places: Places
    coins: list[float]
    noise: Tensor | None

    def of_nothing(self) -> "Question":
        """A question with the same key about an empty tree."""
        return Question(self.key, Places.of(DraftTree()), [], None)


@dataclass(frozen=True)
class QuestionedDraft(Draft):
    """A draft that the pass may judge."""

    question: Question | None = None


@dataclass(frozen=True)
class JudgedSeen(Seen):
    """The answer of a pass that has judged its tree and moved the kept rows into their place.

    numbers: waits for the numbers of the verdict (see ``DeviceJudge``). Row i of features belongs to
    the i-th kept row, as far as there are any; logits are valid only until the model's next pass.
    """

    numbers: Callable[[], list[int]] | None = None

    def places_of(self, rows: list[int]) -> list[int]:
        return list(range(len(rows)))
