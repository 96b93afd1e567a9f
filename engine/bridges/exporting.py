"""A recommended setting as settings of a serving engine. If an engine cannot express something in the setting, a note
says so, and nothing else takes its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.bridges.acceptance_numbers import cut_short, numbers
from engine.bridges.export_words import CUT_SHORT, in_full, in_its_place, measured
from engine.bridges.llama_cpp_flags import llama_cpp_flags
from engine.bridges.recommended import Recommended
from engine.bridges.sglang_flags import sglang_flags
from engine.bridges.transformers_arguments import transformers_arguments
from engine.bridges.vllm_config import vllm_config
from engine.errors import unknown

CAUTION = "Acceptance carries over to another machine. The size does not carry over: measure again where the server runs."


@dataclass(frozen=True)
class Export:
    """A recommended setting, written for one engine.
    text: the settings for the engine; "" if the engine cannot express the recommended setting. synthetic: settings for
    a test of the server's speed, in which the engine accepts drafted tokens at the measured rates, whatever the drafter
    proposes; "" if the engine has no such mode, or if the acceptance rate of some position is unknown. notes: sentences
    for people. differs: what in the settings differs from the record's answer, and why, for people; "" if nothing does.
    measured: with which models it was measured, and how fast this setting was there, for people."""

    engine: str
    text: str
    synthetic: str = ""
    notes: tuple[str, ...] = ()
    differs: str = ""
    measured: str = ""


Words = tuple[str, str, list[str]]
"""The fields text, synthetic and notes of an ``Export``."""
ENGINES: dict[str, tuple[str, Callable[[Recommended], Words]]] = {
    "vllm": ("vLLM", vllm_config),
    "sglang": ("SGLang", sglang_flags),
    "llama.cpp": ("llama.cpp", llama_cpp_flags),
    "transformers": ("transformers", transformers_arguments),
}
"""Key -> the engine's name, and the function that writes its settings."""
NEVER_EARLY = ("vllm", "sglang")
"""Engines that never end a chain's draft early."""
EXACT = ("greedy", "rejection", "block")
"""Rules that need no note from ``export``: the engines have these rules, or the functions in ``ENGINES`` treat them."""


def expressible(setting: Recommended, engine: str) -> bool:
    """Whether the engine can express the setting. Raises UserError for an unknown engine."""
    _, write = _engine(engine)
    return bool(write(setting)[0])


def export(setting: Recommended, engine: str) -> Export:
    """The settings for an engine. Raises UserError for an unknown engine."""
    title, write = _engine(engine)
    text, synthetic, notes = write(setting)
    if not text:
        return Export(title, "", notes=tuple(notes))
    if setting.verifier not in EXACT:
        notes.append(
            f"The record was measured with the rule `{setting.verifier}`, which {title} does not have; its own rule keeps another share."
        )
    if synthetic and cut_short(setting.positions):
        notes.append(CUT_SHORT)
    rates = [] if synthetic else _rates(setting)
    never_early = engine in NEVER_EARLY
    written = setting.in_full if never_early else setting
    told = (*notes, *rates, CAUTION)
    differs = _differs(title, setting, never_early)
    return Export(title, text, synthetic, told, differs, measured(setting, written.size))


def _differs(title: str, setting: Recommended, in_full_only: bool) -> str:
    """``Export.differs``. in_full_only: whether the engine never ends a draft early."""
    sentences = []
    if setting.instead_of is not None:
        sentences.append(in_its_place(title, setting, setting.instead_of))
    shorter = setting.drafted is None or setting.in_full.size != setting.size
    if setting.drafter == "chain" and in_full_only and shorter:
        sentences.append(in_full(title, setting))
    return " ".join(sentences)


def _engine(engine: str) -> tuple[str, Callable[[Recommended], Words]]:
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    return ENGINES[engine]


def _rates(setting: Recommended) -> list[str]:
    rates = numbers(setting.positions)["conditional"]
    figures = [f"{place}: {rate:.3f}" for place, rate in enumerate(rates, 1) if rate is not None]
    return (
        [f"Chance of a token to be kept, once those before it are: {', '.join(figures)}."]
        if figures
        else []
    )
