"""The interface of students. A student defines how one kind of part (a model that drafts for a target) learns from the
target: how the part starts, its loss, its accepted length on a text, and its files. The text, the budget, the
checkpoints and the table of figures are the recipe's (`part_recipe`).

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
    """A batch of text with the frozen target's hidden states and logits, from which a part learns.

    tokens: int64 [S, T].
    counted: bool [S, T], False for tokens whose prediction does not enter the loss.
    features: [S, T, n*H], the target's hidden states at the student's ``feature_layers``; None if the student uses
    none.
    logits: the target's logits, where row t is for token t + 1. [S, T, V], or [S, T, K] if the student has K
    ``taught_tokens``; None if the student uses none.
    index: the batch's number. All randomness in a loss follows from it, so a resumed training gives the same losses.
    best: int64 [S, T], the target's likeliest token for t + 1 in the whole vocabulary; None if ``logits`` has all V
    tokens.
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
    """The lesson from one pass of the target over tokens [S, T]. layers: the indices in the target's hidden_states of
    the features. known: the only tokens for which the lesson has logits, int64 [K]; None: all tokens."""
    tokens, counted = tokens.to(target.device), counted.to(target.device)
    output = target(input_ids=tokens, use_cache=False, output_hidden_states=True)
    states = [output.hidden_states[layer] for layer in layers]
    features = torch.cat(states, dim=-1) if states else None
    if known is None:
        return Lesson(tokens, counted, features, output.logits, index)
    logits = output.logits.index_select(-1, known.to(target.device))
    return Lesson(tokens, counted, features, logits, index, output.logits.argmax(-1))


class Student(ABC):
    """Base class of students. The target is frozen; a student may use the target's embeddings and head."""

    key: ClassVar[str]
    """The name of the recipe, and of the folder to which the part is written unless the user names another."""

    summary: ClassVar[str]
    """One line that describes the recipe in the list of recipes."""

    options: ClassVar[tuple[Option, ...]] = ()
    """The options for the part's shape and training, set by --option NAME=VALUE."""

    after: ClassVar[str] = ""
    """The key of the recipe that must run before this one in the recipe `family`, because this part starts from the
    other recipe's part or is compared with it; "": there is none."""

    of_family: ClassVar[bool] = True
    """Whether the recipe `family` trains such a part. If not, the recipe is only for targets that the user names by
    --target."""

    reads_target: ClassVar[bool] = True
    """Whether the loss needs the target's hidden states or logits. If not, the lessons in training have neither."""

    muon_rate: ClassVar[float] = 0.01
    adam_rate: ClassVar[float] = 2e-3

    def __init__(self, target: PreTrainedModel, settings: Mapping[str, Value]) -> None:
        """settings: name of an option -> its value, for all options of the student."""
        self.target = target
        self.config = target.config.get_text_config(decoder=True)
        self.settings = dict(settings)

    @classmethod
    def of(cls, teacher: Teacher, settings: Mapping[str, Value]) -> Student:
        """The student for this teacher. A subclass that needs a draft model overrides this and takes
        ``teacher.draft``."""
        return cls(teacher.module, settings)

    @property
    def logit_sets(self) -> int:
        """How many tensors of logits, each for a whole batch, the loss holds at the same time. It is needed to
        estimate the memory."""
        return 1

    @property
    def feature_layers(self) -> tuple[int, ...]:
        """The indices in the target's hidden_states of the features. By default only that of the state after the final
        norm."""
        return (self.config.num_hidden_layers,)

    @property
    def taught_tokens(self) -> Tensor | None:
        """The only tokens whose logits the loss uses, int64 [K] in ascending order; None: all tokens."""
        return None

    def mixture(self, progress: float) -> tuple[int, int]:
        """The mixture of the training text at this progress (0 to 1), as (own, corpora): ``own`` windows of the
        target's own text, then ``corpora`` windows of the corpora, and so on in turn."""
        return 1, 1

    def prepare(self, tokens: Tensor) -> None:
        """Called before ``start`` with the tokens of the training text that enter the loss, int64 [N]. The default
        does nothing."""

    def reach(self, done: float) -> None:
        """Called at every look (measurement during the training) with the progress (0 to 1), so that a student can
        begin another stage of its training. The default does nothing."""

    @abstractmethod
    def start(self) -> nn.Module:
        """A new part with its initial weights; its shape follows from the target and the settings."""

    @abstractmethod
    def loss(self, part: nn.Module, lesson: Lesson) -> Tensor:
        """The part's loss on a lesson, a mean over the tokens that are counted."""

    @abstractmethod
    def accepted(self, part: nn.Module, lesson: Lesson) -> Tensor:
        """For each token as the root, how many of the next tokens a draft would get right, int64 [S, T], found by
        teacher forcing. If the lesson is a greedy text of the target, a greedy run would accept this many tokens."""

    def measured(self, part: nn.Module, lessons: Iterable[Lesson]) -> dict:
        """The figures that are written beside the part. lessons: greedy texts of the target from which the part has
        not learned. The recipe calls this method also before each call of ``accepted``, so a student may store values
        in the part that determine the shape of its drafts."""
        return {}

    def report(self, found: Mapping) -> str:
        """Text to print at the end of the training; "": nothing. found: the result of ``measured``."""
        return ""

    def save(self, part: nn.Module, folder: Path, about: Mapping) -> None:
        """Write the part to a folder, in the layout in which such parts are published. about: further fields for
        config.json, which are the digest of the target and the result of ``measured``."""
        part.save(folder, about)
