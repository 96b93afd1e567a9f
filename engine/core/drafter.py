"""The interface of all drafters: the data that they receive and the proposals that they return."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from torch import Tensor

from engine.core.arm import Arm
from engine.core.chance import DraftChance
from engine.core.load import Expected, Load
from engine.core.memory import Memory
from engine.core.options import Option, Value
from engine.core.proposal import Proposal
from engine.core.sampling import Sampling
from engine.core.tree import DraftTree

if TYPE_CHECKING:
    from engine.core.constraint import Constraint
    from engine.core.target import Models, Session

Family = Literal["chain", "tree", "retrieval", "diffusion", "heads", "self", "none"]
"""The kind of method. ``none`` is plain decoding only."""
Loop = Literal["speculative", "switching", "overlapped", "prepared", "searching"]
Shape = Literal["chain", "paths", "levels", "spelled", "any"]
"""The form of a sampled tree, for rules that judge whole branches.

``chain``: no node has a sibling, and every token is drawn for its own step. ``paths``: independent chains of one
length, merged where their first tokens are the same. ``levels``: the number of draws under a node depends on its depth
only. ``spelled``: all branches spell prefixes of the same string of letters, which was drawn. ``any``: nothing is
promised.
"""


def tree_size(most: int, name: str = "budget") -> Option:
    """The option for the number of nodes in a drafter's tree, at most ``most``; 0 picks the fastest number."""
    text = "Most nodes of the tree: more make it wider and deeper (0: the fastest size for this machine, measured)."
    return Option(name, "int", 0, text, 0, most, label="Nodes")


@dataclass(frozen=True)
class Start:
    """Everything that a drafter may know at the beginning of a text.

    prompt: the prompt's tokens; the last one is the root. chance: the drafter's random choices.
    features: [T - 1, n*H], the target's hidden states at all of the T prompt tokens but the root, or at the last
    ``feature_rows`` of them; None if the drafter requests none.
    target: the target's session for this text. A drafter that uses the target's own layers may feed rows to this
    session. The drafter drops these rows before it proposes, unless the target's pass is to start from them
    (``Proposal.begun``).
    memory: the visitor's memory. load: the expected load of the first pass.
    """

    prompt: Sequence[int]
    sampling: Sampling
    chance: DraftChance
    features: Tensor | None = None
    target: Session | None = None
    memory: Memory = field(default_factory=Memory)
    constraint: Constraint | None = None
    load: Load = field(default_factory=Load)


@dataclass(frozen=True)
class Kept:
    """The part of a step's outcome that a drafter may know.

    tree: the drafter's proposal. path: the kept nodes, from depth 1 downwards. tokens: the step's output (path and
    final token).
    final: as in a verdict. It is None under a rule that lets the drafter choose the next token. In this case the last
    kept node is the next root: the target's cache does not hold it yet, and ``path`` leaves it out.
    logits: [N+1, V], the target's logits after the root and each of the N nodes; NaN in rows that the target did not
    compute; None if it made no pass.
    features: [1 + len(path), n*H], the target's hidden states at the root and the kept nodes; None if the drafter
    requests none.
    root: the token below which the tree was drafted. position: the number of tokens committed before the step.
    milliseconds: the time of the step so far, by stage; of a pass shared with other texts, only this text's share.
    probes: logits [M, V] of the drafter's probe rows, or None. load: the load of the pass.
    """

    tree: DraftTree
    path: list[int]
    tokens: list[int]
    logits: Tensor | None
    features: Tensor | None = None
    root: int = 0
    position: int = 0
    milliseconds: Mapping[str, float] = field(default_factory=dict)
    probes: Tensor | None = None
    load: Load = field(default_factory=Load)
    final: Literal["bonus", "recovered"] | None = "bonus"


class Drafter(ABC):
    """Proposes draft trees for one text; one instance serves one run.

    A drafter sees the context, its own state, and the contents of ``Start`` and ``Kept``.
    """

    key: ClassVar[str]
    title: ClassVar[str]
    """The name shown to people; ``key`` is for programs."""

    family: ClassVar[Family]
    summary: ClassVar[str]
    options: ClassVar[tuple[Option, ...]] = ()

    draw_kinds: ClassVar[tuple[str, ...]]
    """The kinds of draw in sampled decoding. At temperature 0 the drafter takes the likeliest tokens instead of drawing
    from a law; their kind is ``one_hot``."""

    shape: ClassVar[Shape] = "any"

    default_verifier: ClassVar[str] = "rejection"
    """The default rule of sampled decoding."""

    default_greedy_verifier: ClassVar[str] = "greedy"
    """The default rule at temperature 0; a lossy rule if the method itself is lossy."""

    needs: ClassVar[Mapping[str, str]] = {}
    """The parts (trained modules beside the target) that the drafter requires: role -> kind (``engine.parts``)."""

    loop: ClassVar[Loop] = "speculative"
    """The loop in which the drafter runs (``engine.loops``)."""

    text_law: ClassVar[str] = ""
    """The law of the texts that this drafter writes, in words, if the drafter decides which text is written; otherwise
    "" (as ``engine.core.rule.Verifier.law``)."""

    mixed_siblings: ClassVar[bool] = False
    """Whether draws under one node may differ in kind or law."""

    about_pictures: ClassVar[bool] = False
    """Whether the drafter is made for prompts with a picture or a film; on other prompts it drafts as a drafter of
    texts does."""

    uses_target: ClassVar[bool] = False
    """Whether the drafter feeds rows to the target's own session, or adds probe rows to the target's passes."""

    rows_kept: ClassVar[int] = 0
    """The most rows that the drafter stores in the target's session, besides the rows of the text."""

    learns: ClassVar[bool] = False
    """Whether the drafter keeps anything in the visitor's memory."""

    keeps_settings_only: ClassVar[bool] = False
    """Whether the drafter keeps in the visitor's memory only settings that it has searched for, and nothing of the
    texts."""

    reads_chains: ClassVar[bool] = False
    """Whether the drafter, in greedy decoding, lets its draft models write chains in which each token is the likeliest
    one after the token before (``Session.read_ahead``)."""

    size_option: ClassVar[str | None] = None
    """The option that sets the number of drafted nodes; 0 means the number that pays on this machine."""

    usual_size: ClassVar[int] = 0
    """The size that replaces a size of 0 where nothing has been measured."""
    yours: ClassVar[bool] = False
    """Whether the drafter comes from a folder outside this repository (``engine.finding.outside``)."""

    arm: ClassVar[Arm | None] = None
    """First guesses about this drafter, for drafters that choose another drafter at each step. With None, they may not
    choose this one. Subclasses do not inherit the guesses."""

    sources: ClassVar[tuple[type[Drafter], ...]] = ()
    """The drafters whose drafts this drafter joins; each of them can also be measured alone."""

    trial: ClassVar[Mapping[str, Value]] = {}
    """Options for tests and figures: a small setting in which a tiny model shows how the drafter works."""

    draft_features: tuple[int, ...] = ()
    """Indices into the draft model's hidden_states that the drafter requests."""

    feature_layers: tuple[int, ...] = ()
    """Indices into the target's hidden_states that the drafter requests."""

    feature_rows: int | None = None
    """The number of last prompt tokens at which the drafter requests hidden states; None means all."""

    max_context: float = math.inf
    """The longest text, in tokens, that the drafter can follow; beyond it the target decodes plainly."""

    wants_features: bool = True
    """Whether the drafter needs the target's hidden states from the next pass. This is looked up after each proposal. A
    pass may return hidden states even if it is False."""

    def __init__(self, settings: Mapping[str, Value]) -> None:
        self.settings = dict(settings)
        if self.size_option is not None and not settings[self.size_option]:
            self.settings[self.size_option] = self.usual_size

    @classmethod
    def build(cls, settings: Mapping[str, Value], models: Models) -> Drafter:
        """An instance for one run, built from its resolved options and the run's models."""
        return cls(settings)

    @classmethod
    def at_fixed_size(cls, settings: Mapping[str, Value]) -> Mapping[str, Value] | None:
        """The options under which the drafter drafts its full size at every step, for a drafter that otherwise chooses
        its size at each step by the costs of steps; None for other drafters. The costs of steps are measured under
        these options, and the drafter is then built with these costs (``Models.step_costs``)."""
        return None

    @classmethod
    def asks_for_costs(cls, settings: Mapping[str, Value]) -> bool:
        """Whether ``build`` needs the cost of a target pass on this machine (``Models.costs``)."""
        return bool(settings.get("cost_aware"))

    @classmethod
    def may_use(cls) -> Mapping[str, str]:
        """The parts (trained modules beside the target) that the drafter uses if they are available, but does not
        require: role -> kind."""
        return {}

    @classmethod
    def own_rule(cls, sampling: Sampling) -> str:
        """The key of the rule that judges the drafter unless another rule is chosen."""
        return cls.default_greedy_verifier if sampling.greedy else cls.default_verifier

    @property
    def most_nodes(self) -> int:
        """The most nodes of a step according to the options; 0 if the options do not say."""
        return int(self.settings.get(self.size_option or "length", 0))

    def expect(self, coming: Expected) -> None:
        """Prepare for a text of this size; called before the text is timed."""

    @classmethod
    def kinds(cls, sampling: Sampling) -> frozenset[str]:
        """The kinds of draw that the drafter makes under this sampling. They decide which rules are exact for it.

        The kind ``unseen`` marks tokens that are kept although the target never reads them; no rule is exact for it.
        """
        drawn = ("iid", "without_replacement") if sampling.greedy else ()
        return frozenset("one_hot" if kind in drawn else kind for kind in cls.draw_kinds)

    def begin(self, start: Start) -> None:
        """Start a text. The drafter keeps a copy of ``start`` without the features, which are large and needed only
        now."""
        self.start = replace(start, features=None)
        self.sampling = start.sampling
        self.chance = start.chance

    @abstractmethod
    def propose(self, context: Sequence[int], max_depth: int) -> DraftTree | Proposal:
        """Draft below the root, context[-1], no deeper than max_depth (at least 1). Returns a tree, or a ``Proposal``
        that adds rows to the target's pass over the tree."""

    def prepare(self) -> None:
        """Prepare drafts for possible outcomes of the last proposal. In the loop ``prepared`` this runs on another
        thread while the target reads the proposal."""

    def observe(self, kept: Kept) -> None:
        """Take note of the outcome of the last proposal."""

    def device_twin(self) -> Drafter:
        """The drafter to use for an unrecorded text whose target computes on static buffers: this drafter, or one that
        proposes the same trees with fewer copies to the host. Called before ``begin``."""
        return self

    def passes(self) -> Mapping[str, int]:
        """The number of forward passes that the drafter's own models have made since the text began, by role."""
        return {}

    def close(self) -> None:
        """Free the resources of the run."""
