"""The interface of students. A student defines how a kind of part learns from a target: the part's start, its loss, its
accepted length on a text, and its files. Text, budget, checkpoints and the table belong to the recipe (`part_recipe`).

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
    """A batch of text with the frozen target's hidden states and logits.

    tokens: int64 [S, T].
    counted: bool [S, T], False where the loss skips the token.
    features: [S, T, n*H], the target's hidden states at the student's ``feature_layers``; None if the student reads
    none. logits: the target's; row t is for token t + 1. [S, T, V], or [S, T, K] for the K ``taught_tokens`` of the
    student; None if the student reads none.
    index: of the batch. All randomness in a loss follows from it, so that a resumed training repeats it.
    best: int64 [S, T], the target's likeliest token for t + 1 among all V; None if ``logits`` has all V.
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
    """The lesson from one pass of the target over tokens [S, T]. layers: indices of the target's hidden_states, the
    features. known: int64 [K], the only tokens whose logits the lesson has; None: all."""
    tokens, counted = tokens.to(target.device), counted.to(target.device)
    output = target(input_ids=tokens, use_cache=False, output_hidden_states=True)
    states = [output.hidden_states[layer] for layer in layers]
    features = torch.cat(states, dim=-1) if states else None
    if known is None:
        return Lesson(tokens, counted, features, output.logits, index)
    logits = output.logits.index_select(-1, known.to(target.device))
    return Lesson(tokens, counted, features, logits, index, output.logits.argmax(-1))


class Student(ABC):
    """Base class of students. The target is frozen; a student may use its embeddings and its head."""

    key: ClassVar[str]
    """The name of the recipe, and of the part's folder unless another name is given."""

    summary: ClassVar[str]
    """One line for the list of recipes."""

    options: ClassVar[tuple[Option, ...]] = ()
    """The options of the part's shape and training, set by --option NAME=VALUE."""

    after: ClassVar[str] = ""
    """The key of the recipe that the recipe `family` runs before this one, because this part starts from its part or is
    compared with it; "": none."""

    of_family: ClassVar[bool] = True
    """Whether the embedded family has such a part. If not, the recipe is only for targets named by --target."""

    reads_target: ClassVar[bool] = True
    """Whether the loss reads the target's states or logits. If not, lessons in training have neither."""

    muon_rate: ClassVar[float] = 0.01
    adam_rate: ClassVar[float] = 2e-3

    def __init__(self, target: PreTrainedModel, settings: Mapping[str, Value]) -> None:
        """settings: option -> value, for all options."""
        self.target = target
        self.config = target.config.get_text_config(decoder=True)
        self.settings = dict(settings)

    @classmethod
    def of(cls, teacher: Teacher, settings: Mapping[str, Value]) -> Student:
        """The student for this teacher. Students that need a draft model take ``teacher.draft`` here."""
        return cls(teacher.module, settings)

    @property
    def logit_sets(self) -> int:
        """How many tensors of logits of a whole batch the loss holds at once, for the estimate of memory."""
        return 1

    @property
    def feature_layers(self) -> tuple[int, ...]:
        """The indices of the target's hidden_states that are the features. By default only the last state, after the
        final norm."""
        return (self.config.num_hidden_layers,)

    @property
    def taught_tokens(self) -> Tensor | None:
        """The only tokens whose logits the loss reads, int64 [K] in ascending order; None: all tokens."""
        return None

    def mixture(self, progress: float) -> tuple[int, int]:
        """How many windows of the target's own text, and how many of the corpora, follow each other in turn at this
        progress (0 to 1) of the training."""
        return 1, 1

    def prepare(self, tokens: Tensor) -> None:
        """Called before ``start`` with the counted tokens of the training text, int64 [N]. The default does nothing."""

    def reach(self, done: float) -> None:
        """Called at every look with the progress of the training (0 to 1), so that a student can change the stage of
        its training. The default does nothing."""

    @abstractmethod
    def start(self) -> nn.Module:
        """A new part with its initial weights, of the shape that follows from the target and the settings."""

    @abstractmethod
    def loss(self, part: nn.Module, lesson: Lesson) -> Tensor:
        """The part's loss on a lesson, as a mean over the counted tokens."""

    @abstractmethod
    def accepted(self, part: nn.Module, lesson: Lesson) -> Tensor:
        """For each token as the root, how many of the next tokens a draft would get right, int64 [S, T], by teacher
        forcing. If the lesson is a greedy text of the target, a greedy run would accept as many tokens."""

    def measured(self, part: nn.Module, lessons: Iterable[Lesson]) -> dict:
        """The figures for the part's files. lessons: greedy texts of the target from which the part has not learned.
        This is also called before each call of ``accepted`` by the recipe, so a student may store values in the part
        that shape its drafts."""
        return {}

    def report(self, found: Mapping) -> str:
        """The text to print at the end. found: the figures from ``measured``."""
        return ""

    def save(self, part: nn.Module, folder: Path, about: Mapping) -> None:
        """Write the part to a folder in its published layout. about: more fields for config.json: the digest of the
        target, and the figures from ``measured``."""
        part.save(folder, about)
