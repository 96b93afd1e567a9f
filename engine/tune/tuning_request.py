"""The request for a tuning, with its models, prompts and settings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.parts.loading import ModelPaths
from engine.tune.prompt_sample import Sample

TEXTS = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class OtherMachine:
    """A machine other than this one, for which speeds are estimated.

    bandwidth: the bandwidth of its memory, in gigabytes per second. arithmetic: billions of operations per second.
    costs: pairs of a number of rows and the milliseconds of a pass of the target over so many rows, used instead of
    bandwidth and arithmetic.
    """

    name: str
    bandwidth: float = 0.0
    arithmetic: float = 0.0
    costs: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class TuningRequest:
    """The request for a tuning. models: the folders of the target and of all models that drafters may use. drafters:
    keys; None: every drafter worth trying. new_tokens: by how many tokens each prompt is continued. texts: the numbers
    of texts at a time for which speeds are predicted. record: the file that stores the lines, and from which a stopped
    tuning resumes; None: no file. machines: the other machines for which speeds are estimated. ray: the address of a
    Ray cluster on which the texts are written; None: they are written on this machine.
    """

    models: ModelPaths
    prompts: Sample
    drafters: tuple[str, ...] | None = None
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    new_tokens: int = 64
    texts: tuple[int, ...] = TEXTS
    record: Path | None = None
    machines: tuple[OtherMachine, ...] = ()
    dtype: str | None = None
    device: str | None = None
    ray: str | None = None
