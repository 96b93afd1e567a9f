"""Flags of llama.cpp's server, with the names that they have had since the middle of 2026 (``--spec-…``)."""

from __future__ import annotations

import shlex

from engine.bridges.export_words import (
    NO_RATES,
    STOPS,
    no_block_rule,
    no_drafter,
    no_switch,
    no_tree,
)
from engine.bridges.recommended import TREES, Recommended

GGUF = "llama.cpp takes models as GGUF: convert target and drafter first."


def llama_cpp_flags(setting: Recommended) -> tuple[str, str, list[str]]:
    notes: list[str] = []
    flags = _drafting(setting, notes)
    if flags is None:
        return "", "", notes
    if setting.verifier == "block":
        notes.append(no_block_rule("llama.cpp"))
    if setting.off_above is not None:
        notes.append(no_switch("llama.cpp", setting))
    synthetic = ""
    if setting.rates is None:
        notes.append(NO_RATES)
    else:
        synthetic = shlex.join([*flags, "--spec-synth-rates", ",".join(map(str, setting.rates))])
    return shlex.join(flags), synthetic, [*notes, GGUF]


def _drafting(setting: Recommended, notes: list[str]) -> list[str] | None:
    most = ["--spec-draft-n-max", str(setting.size)]
    if setting.drafter == "chain":
        notes.append(STOPS)
        how = "probabilistic" if setting.temperature else "greedy"
        model = setting.checkpoint or f"{setting.draft or 'DRAFT_MODEL'}.gguf"
        return ["--spec-type", "draft-simple", "-md", model, *most, "--spec-draft-sampling", how]
    if setting.drafter in TREES and setting.width > 1:
        notes.append(no_tree("llama.cpp", setting))
        return None
    if setting.drafter == "eagle":
        if setting.eagle3 is False:
            notes.append(
                "llama.cpp has EAGLE-3 only, so an EAGLE-1 or EAGLE-2 drafter cannot be expressed for it."
            )
            return None
        if setting.eagle3 is None:
            notes.append(
                "llama.cpp has EAGLE-3 only; `python -m engine inspect` tells whether the checkpoint is one."
            )
        return [
            "--spec-type",
            "draft-eagle3",
            "-md",
            setting.checkpoint or "EAGLE_CHECKPOINT.gguf",
            *most,
        ]
    if setting.drafter == "mtp":
        return ["--spec-type", "draft-mtp", *most]
    if setting.drafter == "dflash":
        return [
            "--spec-type",
            "draft-dflash",
            "-md",
            setting.checkpoint or "DFLASH_CHECKPOINT.gguf",
            *most,
        ]
    if setting.drafter == "prompt_lookup":
        length = setting.options.get("max_ngram", 5)
        notes.append(
            f"llama.cpp looks up runs of exactly {length} tokens; `prompt_lookup` also takes shorter ones, so expect fewer drafts."
        )
        sizes = [
            "--spec-ngram-simple-size-n",
            str(length),
            "--spec-ngram-simple-size-m",
            str(setting.size),
        ]
        return ["--spec-type", "ngram-simple", *sizes]
    notes.append(no_drafter("llama.cpp", setting))
    return None
