"""What every acceptance rule takes and gives."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor

from engine.options import Option
from engine.sampling import Sampling
from engine.tree import DraftTree, Kind

EVERY_KIND: frozenset[str] = frozenset(get_args(Kind))

Status = Literal["accepted", "rejected", "ignored"]


@dataclass(frozen=True)
class Judgement:
    """One node weighed once.

    p, q: as this judgement used them (residuals, one-hot and division factors applied); None
        where the rule knows none. accept: the probability of keeping. coin: kept exactly when
        coin < accept; None where nothing is tossed.
    """

    node: int
    rule: str
    p: float | None
    q: float | None
    accept: float
    coin: float | None


@dataclass
class Verdict:
    """What became of a tree.

    accepted: the kept path, node indices from depth 1 downwards.
    status: one entry a node.
    final_token: the target's own token after the path; ``recovered`` after a refusal,
        ``bonus`` when everything on the path was accepted.
    walk: where the walk stood, root (-1) first.
    residuals: by place of the walk, the distribution [V] from which the next token had to come
        once children had been refused there.
    """

    accepted: list[int]
    status: list[Status]
    judgements: list[Judgement]
    final_token: int
    final: Literal["bonus", "recovered"]
    walk: list[int]
    residuals: dict[int, Tensor] = field(default_factory=dict)


def statuses(size: int, accepted: list[int], judgements: list[Judgement]) -> list[Status]:
    """One status a node: on the kept path, judged and refused, or neither."""
    status: list[Status] = ["ignored"] * size
    for judgement in judgements:
        status[judgement.node] = "rejected"
    for node in accepted:
        status[node] = "accepted"
    return status


class Verifier(ABC):
    """An acceptance rule."""

    key: ClassVar[str]
    title: ClassVar[str] = ""
    """Its name for people."""
    summary: ClassVar[str]
    options: ClassVar[tuple[Option, ...]] = ()
    sentences: ClassVar[Mapping[str, str]] = {}
    """Why a token was kept or refused, for the trace: see ``engine.trace.sentences``."""
    exact_kinds: ClassVar[frozenset[str]]
    """Kinds of proposal with which the output keeps the target's distribution."""
    only_greedy: ClassVar[bool] = False
    """True for a rule that means something at temperature 0 only."""

    def lossless_with(self, kinds: Iterable[str]) -> bool:
        return set(kinds) <= self.exact_kinds

    @abstractmethod
    def judge(
        self,
        tree: DraftTree,
        p: Tensor,
        sampling: Sampling,
        position: int,
        coins: torch.Generator,
    ) -> Verdict:
        """Walk the tree from the root and say what is kept.

        p: [N+1, V] what the target samples from after the root (row 0) and after node i
            (row i+1), on the target's device. position: where the first drafted token would
            stand in the text; it keys the noise of the final token. coins: the verifier's own
            stream.
        """
