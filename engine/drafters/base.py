"""What every way of drafting takes and gives."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from torch import Tensor

from engine.chance import DraftChance
from engine.memory import Memory
from engine.options import Option, Value
from engine.sampling import Sampling
from engine.tree import DraftTree

if TYPE_CHECKING:
    from engine.constraint import Constraint
    from engine.parts.loading import Models
    from engine.target.session import Session

Family = Literal["chain", "tree", "retrieval", "diffusion", "heads", "self", "none"]


def tree_size(most: int, name: str = "budget") -> Option:
    """The option of a drafter whose tree has as many nodes as pay, at most ``most``."""
    told = "Most nodes of the tree: more make it wider and deeper (0: the size that pays)."
    return Option(name, "int", 0, told, 0, most, label="Nodes")


@dataclass(frozen=True)
class Start:
    """The beginning of a text, as its drafter may know it.

    prompt: tokens, the root last. chance: the drafter's random choices. features: [T - 1, n*H], the
    target's hidden states of all but the root (of the last ``feature_rows`` of these tokens), or None if the drafter
    asked for none. target: the
    session in which the target reads the text; a drafter that uses the target's own layers may feed
    it rows, and drops them before it proposes unless the target is to go on from them (``DraftTree.begun``). memory: the visitor's. constraint: on the text,
    or None.
    """

    prompt: Sequence[int]
    sampling: Sampling
    chance: DraftChance
    features: Tensor | None = None
    target: Session | None = None
    memory: Memory = field(default_factory=Memory)
    constraint: Constraint | None = None


@dataclass(frozen=True)
class Load:
    """The load of one pass of the target. texts: how many shared the pass. rows: of all these texts. context:
    tokens before their roots, all together. written: tokens that a text wrote in the pass before, a mean over
    the texts; 0 if there was no such pass."""

    texts: int = 1
    rows: int = 1
    context: int = 0
    written: float = 0.0


@dataclass(frozen=True)
class Kept:
    """What became of a step, as a drafter may know it.

    tree: what it proposed. path: kept nodes from depth 1 downwards. tokens: the step's output
    (kept path and final token). final: as of a verdict; under a rule that leaves the next token to the draft (``none``)
    the last kept node stands for the final token: it is the next root, has yet to be read, and is not in ``path``. logits: [N+1, V] the target's, after the root and each node; a row
    of NaN, or None, where the target did not look.
    features: [1 + len(path), n*H] the target's hidden states at the root and the kept nodes, or
    None if the drafter asked for none. root: the token the tree stood on; position: tokens committed
    before the step. milliseconds: of the step so far, by stage. probes: logits [M, V] of its probe
    rows, or None. load: of the pass; of what it took, ``milliseconds`` holds this text's share.
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
    final: Literal["bonus", "recovered", "none"] = "bonus"


class Drafter(ABC):
    """Proposes trees for one sequence; one instance a run.

    It sees the context, its own state, and what ``Start`` holds.
    """

    key: ClassVar[str]
    title: ClassVar[str]
    """Its name for people; the key is for programs."""

    family: ClassVar[Family]
    summary: ClassVar[str]
    options: ClassVar[tuple[Option, ...]] = ()

    default_verifier: ClassVar[str] = "rejection"
    """The rule of sampled decoding."""

    default_greedy_verifier: ClassVar[str] = "greedy"
    """The rule at temperature 0; a lossy one where that is what the method is."""

    needs: ClassVar[Mapping[str, str]] = {}
    """The parts it takes beside the target: role -> kind (``engine.parts``)."""

    loop: ClassVar[str] = "speculative"
    """The loop that it runs in (``engine.loops``)."""

    mixed_siblings: ClassVar[bool] = False
    """Whether siblings may differ in kind or law."""

    uses_target: ClassVar[bool] = False
    """Whether it feeds rows to the target's own session, or adds probe rows to the target's passes."""

    learns: ClassVar[bool] = False
    """Whether it keeps anything in the visitor's memory."""

    size_option: ClassVar[str | None] = None
    """The option that says how many nodes are drafted; its 0 means what pays on this machine."""

    usual_size: ClassVar[int] = 0
    """What a 0 becomes where nobody has measured."""

    trial: ClassVar[Mapping[str, Value]] = {}
    """Options for tests and figures: a small setting in which a tiny model shows it at work."""

    feature_layers: tuple[int, ...] = ()
    """Indices into the target's hidden_states that it wants handed in."""

    feature_rows: int | None = None
    """Last tokens of the prompt at which it wants them; None is all."""

    max_context: float = math.inf
    """Tokens it can follow; beyond them the target decodes plainly."""

    def __init__(self, settings: Mapping[str, Value]) -> None:
        self.settings = dict(settings)
        if self.size_option is not None and not settings[self.size_option]:
            self.settings[self.size_option] = self.usual_size

    @classmethod
    def build(cls, settings: Mapping[str, Value], models: Models) -> Drafter:
        """An instance for one run, given its resolved options and the run's models."""
        return cls(settings)

    @classmethod
    @abstractmethod
    def kinds(cls, sampling: Sampling) -> frozenset[str]:
        """The kinds of draw it makes under these settings; they decide exactness.

        ``unseen``: tokens that are kept though the target never looks at them, exact under no rule.
        """

    def begin(self, start: Start) -> None:
        """Start a sequence. What is kept of ``start`` holds no features: they are large and wanted here only."""
        self.start = replace(start, features=None)
        self.sampling = start.sampling
        self.chance = start.chance

    @abstractmethod
    def propose(self, context: Sequence[int], max_depth: int) -> DraftTree:
        """Draft below the root, context[-1]; no deeper than max_depth (at least 1)."""

    def observe(self, kept: Kept) -> None:
        """Learn what became of the last proposal."""

    def passes(self) -> Mapping[str, int]:
        """Forward passes of its own models since the text began, by role."""
        return {}

    def close(self) -> None:
        """Free what the run held."""
