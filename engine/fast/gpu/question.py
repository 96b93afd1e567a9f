"""How a pass of the target is asked to judge its draft tree (a question), and what the pass returns."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from engine.core.sampling import Sampling
from engine.core.seen import Draft, Seen
from engine.core.tree import DraftTree
from engine.fast.kernels.flat_tree import Places


@dataclass(frozen=True)
class JudgingKey:
    """How the trees of a text are judged, whatever the seed. This key is part of the keys of passes that judge.

    rule: the verifier's key. sampling: the sampling settings, with seed 0 in place of the real seed. kinds: the kinds
    of draw that the drafter makes.
    """

    rule: str
    sampling: Sampling
    kinds: frozenset[str]

    @property
    def greedy(self) -> bool:
        return self.sampling.greedy

    @property
    def draws(self) -> bool:
        """Whether judging needs the draft distributions q that the proposals were drawn from."""
        return self.rule == "rejection" and bool(self.kinds - {"one_hot"})

    @property
    def strikes(self) -> bool:
        """Whether a rejected token is removed from the draft distribution before the next draw under the same parent is
        judged."""
        return self.draws and "without_replacement" in self.kinds


@dataclass(frozen=True)
class Question:
    """A tree for the device to judge.

    places: the tree's nodes and the root, with the draws under each of them. coins: one uniform number per draw if the
    rule rejects by chance, else empty. noise: [depths, V] on the device, one row per depth, if the rule draws tokens,
    else None.
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
    """A draft whose tree the target's pass may judge. question: what the pass needs for judging."""

    question: Question | None = None


@dataclass(frozen=True)
class JudgedSeen(Seen):
    """The results of a pass that has judged its tree and moved the KV rows of the accepted nodes to the columns after
    the committed ones.

    numbers: a function that waits for the numbers of the verdict and returns them (see ``DeviceJudge``). Row i of the
    features belongs to the i-th accepted row; there are no features unless the session returns some. The logits are
    valid only until the model's next pass.
    """

    numbers: Callable[[], list[int]] | None = None

    def places_of(self, rows: list[int]) -> list[int]:
        return list(range(len(rows)))
