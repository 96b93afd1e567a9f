"""What every way of drafting takes and gives."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from engine.options import Option, Value
from engine.sampling import Sampling
from engine.tree import DraftTree

Family = Literal["chain", "tree", "retrieval", "diffusion", "heads", "self", "none"]


@dataclass(frozen=True)
class Kept:
    """What became of a step, as a drafter may know it.

    tree: what it proposed. path: kept nodes from depth 1 downwards. tokens: the step's output
    (kept path and final token). logits: [N+1, V] the target's, after the root and each node.
    features: [1 + len(path), n*H] the target's hidden states at the root and the kept nodes, or
    None if the drafter asked for none.
    """

    tree: DraftTree
    path: list[int]
    tokens: list[int]
    logits: Tensor
    features: Tensor | None


class Drafter(ABC):
    """Proposes trees for one sequence; one instance a run.

    It sees the context, its own state, the sampling settings and its own random stream, and the
    target's hidden states if it names layers in ``feature_layers``.
    """

    key: ClassVar[str]
    title: ClassVar[str]
    """Its name for people; the key is for programs."""

    family: ClassVar[Family]
    summary: ClassVar[str]
    options: ClassVar[tuple[Option, ...]] = ()
    default_verifier: ClassVar[str] = "rejection"
    needs: ClassVar[frozenset[str]] = frozenset()
    """Which models beside the target it takes: "draft", "diffusion"."""

    size_option: ClassVar[str | None] = None
    """The option that says how many nodes are drafted; its 0 means what pays on this machine."""

    usual_size: ClassVar[int] = 0
    """What a 0 becomes where nobody has measured."""

    feature_layers: tuple[int, ...] = ()
    """Indices into the target's hidden_states that it wants handed in."""

    max_context: float = math.inf
    """Tokens it can follow; beyond them the target decodes plainly."""

    def __init__(self, settings: dict[str, Value]) -> None:
        self.settings = dict(settings)
        if self.size_option is not None and not settings[self.size_option]:
            self.settings[self.size_option] = self.usual_size

    @classmethod
    def build(cls, settings: dict[str, Value], models) -> "Drafter":
        """An instance for one run, given its resolved options and the run's models."""
        return cls(settings)

    @classmethod
    @abstractmethod
    def kinds(cls, sampling: Sampling) -> frozenset[str]:
        """The kinds of proposal it makes under these settings; they decide exactness."""

    def begin(
        self,
        prompt: Sequence[int],
        sampling: Sampling,
        generator: torch.Generator,
        features: Tensor | None,
    ) -> None:
        """Start a sequence. features: [len(prompt) - 1, n*H], of all but the root."""
        self.sampling = sampling
        self.generator = generator

    @abstractmethod
    def propose(self, context: Sequence[int], max_depth: int) -> DraftTree:
        """Draft below the root, context[-1]; no deeper than max_depth (at least 1)."""

    def observe(self, kept: Kept) -> None:
        """Learn what became of the last proposal."""

    def close(self) -> None:
        """Free what the run held."""
