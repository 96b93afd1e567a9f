"""The common base of parts that are torch modules: their layout in files, how they are opened, and how they are refused."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import ClassVar, Self, TypeVar

import torch
from torch import Tensor, nn

from engine.errors import UserError
from engine.model.language_model import LanguageModel
from engine.parts.files import (
    CONFIG,
    WEIGHTS,
    in_dtype,
    load_published,
    part_config,
    read_tensors,
    write_part,
)
from engine.parts.kinds import Opener, PartKind

MOST, WIDEST = 4096, 1 << 24
"""Limits on the number of layers, heads and the like, and on sizes; a config beyond them is nonsense."""
WIDE = ("hidden_size", "intermediate_size", "vocab_size", "max_position_embeddings")
UNUSABLE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RuntimeError)
"""The errors raised for files that no part can have."""
S = TypeVar("S")


class ModulePart(nn.Module):
    """A part whose weights lie in a safetensors file beside a config.json.

    A class says how its layout is read (``of_files``, and ``tensors_of`` where the file's tensors are not the module's) and written
    (``fields``, ``names``). The shapes that the files must have are those of the module that ``of_files`` makes.
    """

    key: ClassVar[str]
    """The name of the kind of part."""

    noun: ClassVar[str]

    files: ClassVar[Sequence[str]] = (WEIGHTS,)
    """Names of the file of weights; the first that exists is read, and WEIGHTS is written."""

    configs: ClassVar[Sequence[str]] = (CONFIG,)
    """Names of the config; the first that exists is read, and CONFIG is written."""

    reads_states: ClassVar[bool] = True
    """Whether it computes on the target's states: in the target's dtype, with sizes that depend on the target."""

    @classmethod
    @abstractmethod
    def of_files(
        cls, config: Mapping, tensors: Mapping[str, Tensor], target: LanguageModel
    ) -> Self:
        """The module for this config and these tensors, whose own numbers are not used. Raises ValueError, whose message
        ends a sentence."""

    @classmethod
    def tensors_of(cls, config: Mapping, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """The file's tensors, without those that are not used, and under the names of ``names``. Raises ValueError, whose
        message ends a sentence."""
        return tensors

    def names(self) -> dict[str, str]:
        """Published name of each weight -> its name in this module."""
        return {name: name for name in self.state_dict()}

    @abstractmethod
    def fields(self) -> dict:
        """The entries of its config."""

    def settle(self, config: Mapping, target: LanguageModel, folder: str) -> None:
        """Take over the config's entries other than sizes. Raises UserError, or ValueError with a clause with which
        the caller's sentence ends."""

    @classmethod
    def tiny(cls, target: LanguageModel, opener: Opener | None = None) -> Self:
        """A small random part beside a tiny target, for proofs and tests."""
        raise NotImplementedError

    @classmethod
    def open(cls, path: str, target: LanguageModel, dtype: torch.dtype | None, device: str) -> Self:
        """The part in a folder. Nothing of the config's sizes is allocated before the weights are known to have them.
        Raises UserError, one sentence. dtype: not used; the target's is taken where its states are read, else float32."""
        made = cls.read(path, target)
        made = in_dtype(made, target.dtype) if cls.reads_states else made
        return made.to(device).requires_grad_(False)

    @classmethod
    def read(cls, path: str | Path, target: LanguageModel | None = None) -> Self:
        """The part in float32 on the CPU, for further training. target: None where several targets will use it; each
        must then be held against it (``settle``)."""
        folder = Path(path)
        try:
            stored = read_tensors(folder, cls.noun, cls.files)
            config = part_config(folder, cls.configs)
            tensors = cls.tensors_of(config, stored)
            with torch.device("meta"):
                made = cls.of_files(config, tensors, target)
            load_published(made, made.names(), tensors)
            if any(buffer.is_meta for buffer in made.buffers()):  # angles, which are in no file
                weights = made.state_dict()
                made = cls.of_files(config, tensors, target)
                made.load_state_dict(weights, assign=True)
            made.settle(config, target, folder.name)
        except UNUSABLE as error:
            words = f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)
            words = words.partition("\n")[0].rstrip(".")
            raise UserError(f"{cls._refusal(folder.name, target)}: {words}.") from None
        return made.eval()

    @classmethod
    def _refusal(cls, folder: str, target: LanguageModel | None) -> str:
        """The sentence, without the reason."""
        if not cls.reads_states:
            return f"The {cls.noun} in {folder} cannot be opened"
        return f"{folder} holds no {cls.noun}" + (f" for {target.name}" if target else "")

    def tensors(self) -> dict[str, Tensor]:
        """The part's weights under their published names."""
        weights = self.state_dict()
        return {name: weights[own] for name, own in self.names().items()}

    def save(self, folder: str | Path, about: Mapping) -> None:
        """about: further fields of the config, the digest of its target among them (``engine.parts.digest``)."""
        write_part(Path(folder), self.tensors(), self.fields() | dict(about))

    @classmethod
    def kind(cls) -> PartKind:
        return PartKind(cls.key, cls.noun, cls.open, cls.tiny)


@torch.no_grad()
def noisy(part: nn.Module, size: float = 0.2) -> nn.Module:
    """The part with noise of this size on its weights, frozen: an untrained part whose predictions differ."""
    for weight in part.parameters():
        weight += size * torch.randn_like(weight)
    return part.eval().requires_grad_(False)


def sizes_of(cls: type[S], raw: Mapping) -> S:
    """A dataclass of positive numbers from the entries of a config. Raises ValueError, whose message ends a sentence."""
    known = {}
    for field in fields(cls):
        value, whole = raw.get(field.name), field.type == "int"
        if value is None:
            if field.default is MISSING:
                raise ValueError(f"its config has no {field.name}")
            continue
        most = (WIDEST if field.name in WIDE else MOST) if whole else 1e12
        fits = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
        if not (fits and 0 < value <= most):
            raise ValueError(f"{value!r} is not a valid {field.name}")
        known[field.name] = value
    return cls(**known)
