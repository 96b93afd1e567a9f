"""The base class of every acceptance rule, its input and its output."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

from torch import Tensor

from engine.core.bound import MASKED, Bound
from engine.core.chance import JudgeChance
from engine.core.constraint import Constraint
from engine.core.exhibits import Exhibit, Later
from engine.core.options import Option, Value
from engine.core.sampling import Sampling
from engine.core.schemes import Scheme
from engine.core.seen import Probes
from engine.core.target import Target
from engine.core.tree import DraftTree, Kind

EVERY_KIND: frozenset[str] = frozenset(get_args(Kind))

Status = Literal["accepted", "rejected", "ignored"]
Final = Literal["bonus", "recovered"] | None  # the target's token at the end of a step, if any


@dataclass(frozen=True)
class Judgement:
    """One test of one node.

    p, q: as the test used them (after residuals, one-hot and division factors); None where the rule has none.
    accept: the chance of keeping the node, given the earlier tests. coin: kept if coin < accept; None without a coin.
    """

    node: int
    rule: str
    p: float | None
    q: float | None
    accept: float
    coin: float | None


@dataclass
class Verdict:
    """The outcome for one tree.

    accepted: the kept path, node indices from depth 1 downwards. status: one entry per node.
    final_token: the target's own token after the path. final: ``recovered`` after a refusal, ``bonus`` if all tokens on
    the path were accepted; None under rules that let the drafter choose the next token and ignore final_token.
    walk: the nodes that were visited, root (-1) first; empty where nothing was judged. exhibits: to be shown.
    residuals: for a node (or the root, -1), the law [V] of the next token once children of the node had been refused.
    """

    accepted: list[int]
    status: list[Status]
    judgements: list[Judgement]
    final_token: int
    final: Final
    walk: list[int]
    residuals: dict[int, Tensor] = field(default_factory=dict)
    exhibits: list[Exhibit | Later] = field(default_factory=list)


@dataclass(frozen=True)
class Case:
    """The input of a rule.

    p: [N+1, V] the target's laws after the root (row 0) and node i (row i+1), on its device, or None (see ``reads_p``).
    logits: [N+1, V] of the target before temperature and truncation. probes: logits [M, V] of the probe rows of this
    pass, or None. probe_rows: the description of these rows, or None. position: the position of the first drafted token
    in the text; it keys the target's noise. chance: coins, and draws from the target's laws. bound: the constraint
    together with its text (``Bound``), or None.
    """

    tree: DraftTree
    p: Tensor | None
    logits: Tensor | None
    sampling: Sampling
    position: int
    chance: JudgeChance
    probes: Tensor | None = None
    probe_rows: Probes | None = None
    bound: Bound | None = None


def statuses(size: int, accepted: list[int], judgements: list[Judgement]) -> list[Status]:
    """One status per node: "accepted" on the kept path, else "rejected" if it was judged, else "ignored"."""
    status: list[Status] = ["ignored"] * size
    for judgement in judgements:
        status[judgement.node] = "rejected"
    for node in accepted:
        status[node] = "accepted"
    return status


class Verifier(ABC):
    """An acceptance rule with resolved options, or with all defaults; one instance serves one run."""

    key: ClassVar[str]
    title: ClassVar[str] = ""  # the name shown to people
    summary: ClassVar[str]
    options: ClassVar[tuple[Option, ...]] = ()

    exact_kinds: ClassVar[frozenset[str]] = frozenset()
    """Kinds of draw with which the output keeps the target's distribution; empty for a lossy rule."""

    shapes: ClassVar[frozenset[str] | None] = None
    """The shapes of drafts (``engine.core.drafter.Shape``) that the rule can judge; None: every tree."""

    only_greedy: ClassVar[bool] = False  # whether the rule is meaningful at temperature 0 only
    reads_p: ClassVar[bool] = True  # if not, p is computed only where the steps are recorded
    same_text: ClassVar[bool] = False  # whether a seed means one text, whatever is drafted

    law: ClassVar[str] = ""
    """The law of the texts, in words, if it is meant to differ from the target's; the rule is then never exact."""

    constrained_law: ClassVar[str] = MASKED  # kept under a constraint, if the rule is exact
    learns: ClassVar[bool] = False  # whether the rule keeps anything in the visitor's memory
    tests_tokens: ClassVar[bool] = False
    """Whether the rule tests single tokens against the constraint; then neither p nor q is masked."""

    sentences: ClassVar[Mapping[str, str]] = {}
    """Sentences that say why a token was kept or refused, by judgement rule and outcome ("iid.kept", "iid.refused"),
    and where the final token came from ("recovered", "bonus"). They may use {token} {p} {q} {accept} {coin} {final}."""

    trial: ClassVar[dict[str, Value]] = {}  # options that show the rule at work on tiny models

    def __init__(self, settings: Mapping[str, Value] | None = None) -> None:
        defaults = {option.name: option.default for option in self.options}
        self.settings = defaults | dict(settings or {})

    @classmethod
    def lossless_with(cls, kinds: Iterable[str]) -> bool:
        return bool(cls.exact_kinds) and set(kinds) <= cls.exact_kinds

    @classmethod
    def judges(cls, shape: str, kinds: Iterable[str]) -> bool:
        """Whether the rule can judge drafts of this shape that consist of these kinds of draw."""
        return cls.shapes is None or shape in cls.shapes

    def weighing(self, target: Target, prompt: Sequence[int]) -> Constraint | None:
        """A constraint by which the rule reweights the logits of target and draft along a tree's paths, or None."""

    @abstractmethod
    def judge(self, case: Case) -> Verdict:
        """Walk the tree from the root and decide which nodes are kept."""

    def expected_acceptance(self, p: Tensor, scheme: Scheme) -> float | None:
        """The probability, before the drafts under a node are drawn by this scheme, that the rule will keep one of
        them. p: [V], the target's law after the node. None where it is not known. Used by the meters."""
