"""The request for a tuning."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.parts.loading import ModelPaths
from engine.tune.prompt_sample import Sample

TEXTS = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class OtherMachine:
    """A machine that is not here.

    bandwidth: gigabytes a second from memory. arithmetic: billions of operations a second. costs: in place of these two,
    milliseconds of a pass of the target by rows.
    """

    name: str
    bandwidth: float = 0.0
    arithmetic: float = 0.0
    costs: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class TuningRequest:
    """models: the target and all parts that are at hand. drafters: keys; None is every drafter worth trying.
    new_tokens: written after each prompt. texts: numbers of texts that share a pass. record: the file that keeps the lines, and
    from which a tuning that was stopped goes on; None keeps nothing. machines: for estimates. ray: address of
    a Ray cluster that counts what is kept; None: this machine does.
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
