"""The interface of a part that learns from a target: its start, its loss, its accepted length on a text, and its files.
Text, budget, checkpoints and the table belong to the recipe (`part_recipe`).

Letters in shapes: S windows, T tokens of each, H hidden size of the target, n feature layers, V vocabulary.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from engine.core.options import Option, Value

if TYPE_CHECKING:
    from engine.training.teacher import Teacher


@dataclass(frozen=True)
class Lesson:
    """A batch of text with the frozen target's states and logits.

    tokens: int64 [S, T]. counted: bool [S, T], False where the loss skips the token. features: [S, T, n*H], the
    target's hidden states at the layers that the student asks for. logits: [S, T, V], the target's; row t is for token
    t + 1; of a student with ``taught_tokens`` [S, T, K], of these tokens alone. features and logits are None where the
    student does not need them. index: of the batch; all randomness in a loss follows from it, so that a resumed training
    sees the same. best: int64 [S, T], the target's most likely token for t + 1, out of all; None where all have logits.
    """

    tokens: Tensor
    counted: Tensor
    features: Tensor | None
    logits: Tensor | None
    index: int = 0
    best: Tensor | None = None


@torch.no_grad()
def taught(
    target: PreTrainedModel,
    layers: Iterable[int],
    tokens: Tensor,
    counted: Tensor,
    index: int = 0,
    known: Tensor | None = None,
) -> Lesson:
    """One pass of the target over tokens [S, T]. layers: indices into its hidden_states. known: int64 [K], the tokens whose
    logits are wanted; None: all."""
    tokens, counted = tokens.to(target.device), counted.to(target.device)
    found = target(input_ids=tokens, use_cache=False, output_hidden_states=True)
    states = [found.hidden_states[layer] for layer in layers]
    features = torch.cat(states, dim=-1) if states else None
    if known is None:
        return Lesson(tokens, counted, features, found.logits, index)
    logits = found.logits.index_select(-1, known.to(target.device))
    return Lesson(tokens, counted, features, logits, index, found.logits.argmax(-1))


class Student(ABC):
    """A kind of part in training. The target is frozen; it may be asked for embeddings and head."""

    key: ClassVar[str]
    """The name of the recipe, and of the part's folder unless another name is given."""

    summary: ClassVar[str]
    """One line for the list of recipes."""

    options: ClassVar[tuple[Option, ...]] = ()
    """The options of its shape and its training: --option NAME=VALUE."""

    after: ClassVar[str] = ""
    """The recipe whose part this one starts from or is compared with: in a family it runs before this one."""

    of_family: ClassVar[bool] = True
    """Whether the embedded family has such a part; if not, the recipe is for a named target."""

    reads_target: ClassVar[bool] = True
    """Whether its loss reads the target's states or logits; if not, the lessons of its training hold neither."""

    muon_rate: ClassVar[float] = 0.01
    adam_rate: ClassVar[float] = 2e-3

    def __init__(self, target: PreTrainedModel, settings: Mapping[str, Value]) -> None:
        """settings: resolved options."""
        self.target = target
        self.config = target.config.get_text_config(decoder=True)
        self.settings = dict(settings)

    @classmethod
    def of(cls, teacher: Teacher, settings: Mapping[str, Value]) -> Student:
        """A student of this teacher; those that learn beside a draft get it here (``teacher.draft``)."""
        return cls(teacher.module, settings)

    @property
    def logit_sets(self) -> int:
        """How many times it holds the logits of a whole batch; the estimate of memory uses this number."""
        return 1

    @property
    def feature_layers(self) -> tuple[int, ...]:
        """Indices into the target's hidden_states; the last of these states, the usual one, is after the final norm."""
        return (self.config.num_hidden_layers,)

    @property
    def taught_tokens(self) -> Tensor | None:
        """int64 [K], ascending: the only tokens whose logits its loss reads; None: all."""
        return None

    def mixture(self, progress: float) -> tuple[int, int]:
        """How many windows of the target's own text and of the corpora come in turn, at this progress of the
        training."""
        return 1, 1

    def prepare(self, tokens: Tensor) -> None:
        """Look at the counted tokens of the text that will be learned from, int64 [N], before ``start``."""

    def reach(self, done: float) -> None:
        """Called at every look with the progress of the training (0 to 1); a student that learns in stages changes its
        stage here."""

    @abstractmethod
    def start(self) -> nn.Module:
        """The part before its first lesson: its shape from the target's config, its weights."""

    @abstractmethod
    def loss(self, part: nn.Module, lesson: Lesson) -> Tensor:
        """The loss, a mean over the counted positions."""

    @abstractmethod
    def accepted(self, part: nn.Module, lesson: Lesson) -> Tensor:
        """By teacher forcing, int64 [S, T]: with each token as the root, how many of the tokens after it a draft
        would get right. lesson: greedy text of the target, so a greedy run would keep as many tokens."""

    def measured(self, part: nn.Module, lessons: Iterable[Lesson]) -> dict:
        """Figures for the part's files, on greedy text of the target that the part has not learned from. Also called
        before each look at ``accepted``: values that shape a draft may be put into the part here."""
        return {}

    def report(self, found: Mapping) -> str:
        """The text to print for the figures of ``measured``; "" for nothing."""
        return ""

    def save(self, part: nn.Module, folder: Path, about: Mapping) -> None:
        """Write the part in its published layout, as it does by itself. about: fields for its config.json beside its own:
        the digest of its target, and what ``measured`` found."""
        part.save(folder, about)
