"""The common base of parts that are torch modules: reading them from files, checking them, and saving them."""

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
"""The exceptions that are raised while a part is built from files that make no sense."""
S = TypeVar("S")


class ModulePart(nn.Module):
    """A part whose weights are in a safetensors file beside a config.json.

    A subclass reads its files with ``of_files`` (and ``tensors_of``, if the file's tensors differ from the module's),
    and writes them by ``fields`` and ``names``. The tensors in the files must have the shapes of the module that
    ``of_files`` makes.
    """

    key: ClassVar[str]
    """The name of the kind of part."""

    noun: ClassVar[str]

    files: ClassVar[Sequence[str]] = (WEIGHTS,)
    """Possible names of the file of weights; the first that exists is read, and WEIGHTS is written."""

    configs: ClassVar[Sequence[str]] = (CONFIG,)
    """Possible names of the config; the first that exists is read, and CONFIG is written."""

    reads_states: ClassVar[bool] = True
    """Whether the part takes the target's hidden states as input. If it does, it has the target's dtype, and sizes that
    depend on the target."""

    @classmethod
    @abstractmethod
    def of_files(
        cls, config: Mapping, tensors: Mapping[str, Tensor], target: LanguageModel
    ) -> Self:
        """A module whose shapes fit this config and these tensors. The values of the tensors are not used. Raises
        ValueError, whose message is a clause for the end of the caller's sentence."""

    @classmethod
    def tensors_of(cls, config: Mapping, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Those tensors of the file that the part uses, under the published names of ``names``. Raises ValueError,
        whose message is a clause for the end of the caller's sentence."""
        return tensors

    def names(self) -> dict[str, str]:
        """Published name of each weight -> its name in this module."""
        return {name: name for name in self.state_dict()}

    @abstractmethod
    def fields(self) -> dict:
        """The entries of the part's config."""

    def settle(self, config: Mapping, target: LanguageModel, folder: str) -> None:
        """Apply the config's entries other than sizes. Raises UserError, or ValueError with a clause that ends the
        caller's sentence."""

    @classmethod
    def tiny(cls, target: LanguageModel, opener: Opener | None = None) -> Self:
        """A small random part for a tiny target, for proofs and tests."""
        raise NotImplementedError

    @classmethod
    def open(cls, path: str, target: LanguageModel, dtype: torch.dtype | None, device: str) -> Self:
        """The part in a folder. Its sizes are checked against the weights before memory is allocated. Raises UserError,
        one sentence. dtype: ignored; the part has the target's dtype if it takes the target's hidden states as input,
        and float32 otherwise."""
        part = cls.read(path, target)
        part = in_dtype(part, target.dtype) if cls.reads_states else part
        return part.to(device).requires_grad_(False)

    @classmethod
    def read(cls, path: str | Path, target: LanguageModel | None = None) -> Self:
        """The part in float32 on the CPU, for further training. target: None if several targets will use the part; the
        caller must then call ``settle`` with each of them."""
        folder = Path(path)
        try:
            stored = read_tensors(folder, cls.noun, cls.files)
            config = part_config(folder, cls.configs)
            tensors = cls.tensors_of(config, stored)
            with torch.device("meta"):
                part = cls.of_files(config, tensors, target)
            load_published(part, part.names(), tensors)
            if any(
                buffer.is_meta for buffer in part.buffers()
            ):  # rotary angles, which are in no file
                weights = part.state_dict()
                part = cls.of_files(config, tensors, target)
                part.load_state_dict(weights, assign=True)
            part.settle(config, target, folder.name)
        except UNUSABLE as error:
            words = f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)
            words = words.partition("\n")[0].rstrip(".")
            raise UserError(f"{cls._refusal(folder.name, target)}: {words}.") from None
        return part.eval()

    @classmethod
    def _refusal(cls, folder: str, target: LanguageModel | None) -> str:
        """The beginning of the message that refuses a part; the reason follows it."""
        if not cls.reads_states:
            return f"The {cls.noun} in {folder} cannot be opened"
        return f"{folder} holds no {cls.noun}" + (f" for {target.name}" if target else "")

    def tensors(self) -> dict[str, Tensor]:
        """The part's weights under their published names."""
        weights = self.state_dict()
        return {name: weights[own] for name, own in self.names().items()}

    def save(self, folder: str | Path, about: Mapping) -> None:
        """Write the part's weights and its config to a folder. about: entries that are added to the config; the caller
        must include the digest of the part's target under the name ``engine.parts.digest.FIELD`` if the part is to be
        refused for other targets."""
        write_part(Path(folder), self.tensors(), self.fields() | dict(about))

    @classmethod
    def kind(cls) -> PartKind:
        return PartKind(cls.key, cls.noun, cls.open, cls.tiny)


@torch.no_grad()
def noisy(part: nn.Module, size: float = 0.2) -> nn.Module:
    """Add Gaussian noise of this standard deviation to the part's weights, freeze the part, and return it. With the
    noise, untrained heads that begin alike give different predictions."""
    for weight in part.parameters():
        weight += size * torch.randn_like(weight)
    return part.eval().requires_grad_(False)


def sizes_of(cls: type[S], raw: Mapping) -> S:
    """An instance of ``cls``, a dataclass whose fields are positive numbers, read from the entries of a config. Raises
    ValueError, whose message is a clause for the end of the caller's sentence."""
    sizes = {}
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
        sizes[field.name] = value
    return cls(**sizes)
