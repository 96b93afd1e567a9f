"""SGLang's flags (as of 0.5.23). ``--speculative-num-draft-tokens`` counts the root: for K drafted tokens it is K +
1."""

from __future__ import annotations

import json
import shlex

from engine.bridges.export_words import PLACE, WHICH_EAGLE, no_drafter
from engine.bridges.recommended import TREES, Recommended

NO_SYNTHETIC = "SGLang has no flag for a given acceptance, so the server cannot be tested with the measured one."
ADAPTING = ("EAGLE", "EAGLE3", "NEXTN")
"""Algorithms that can choose the number of steps by the batch size; for chains only."""
IN_BLOCKS = (*ADAPTING, "DFLASH")
"""Algorithms that have block verification; for chains only."""


def sglang_flags(setting: Recommended) -> tuple[str, str, list[str]]:
    notes: list[str] = []
    if setting.drafter == "chain":
        setting = setting.in_full
    flags = _drafting(setting, notes)
    if flags is None:
        return "", "", notes
    chain = setting.drafter not in TREES or setting.width == 1
    if setting.verifier == "block":
        if not chain or flags["algorithm"] not in IN_BLOCKS:
            notes.append(
                f"SGLang has no block verification for {flags['algorithm']} in this form; its own rule keeps fewer tokens."
            )
        else:
            flags["use-block-verification"] = None
    elif setting.temperature and chain and flags["algorithm"] not in ("NGRAM", "DFLASH"):
        flags["use-rejection-sampling"] = None
    if setting.off_above is not None:
        _switch_off(setting, flags["algorithm"] if chain else "", notes)
    notes.append(NO_SYNTHETIC)
    words = [
        word
        for name, value in flags.items()
        for word in (f"--speculative-{name}", *([] if value is None else [str(value)]))
    ]
    return shlex.join(words), "", notes


def _switch_off(setting: Recommended, algorithm: str, notes: list[str]) -> None:
    last = setting.off_above
    if algorithm not in ADAPTING:
        notes.append(
            f"Above {last} texts at a time plain decoding was faster; SGLang can switch by the batch for chains of EAGLE and NEXTN only."
        )
        return
    table = {"1": {"candidate_steps": [setting.size]}, str(last + 1): {"candidate_steps": [0]}}
    notes.append(
        f"To draft nothing above {last} texts at a time, write {json.dumps(table)} to adaptive.json and add "
        "--speculative-adaptive --speculative-adaptive-config adaptive.json."
    )


def _drafting(setting: Recommended, notes: list[str]) -> dict | None:
    """Flags without their common prefix -> values; None for a flag that takes no value. None if SGLang cannot express
    the setting."""
    size = setting.size
    chain = {"num-steps": size, "eagle-topk": 1, "num-draft-tokens": size + 1}
    if setting.drafter == "chain":
        model = setting.checkpoint or setting.draft or "DRAFT_MODEL"
        return {"algorithm": "STANDALONE", "draft-model-path": model, **chain}
    tree = {"num-steps": setting.depth, "eagle-topk": setting.width, "num-draft-tokens": size + 1}
    if setting.drafter == "eagle":
        if not setting.checkpoint:
            notes.append(PLACE.format("EAGLE_CHECKPOINT"))
        if setting.eagle3 is None:
            notes.append(WHICH_EAGLE.format("algorithm", "EAGLE3"))
        algorithm = "EAGLE3" if setting.eagle3 else "EAGLE"
        path = {"draft-model-path": setting.checkpoint or "EAGLE_CHECKPOINT"}
        return {"algorithm": algorithm, **path, **tree}
    if setting.drafter == "mtp":
        return {"algorithm": "NEXTN", **tree}
    if setting.drafter == "dflash":
        if not setting.checkpoint:
            notes.append(PLACE.format("DFLASH_CHECKPOINT"))
        path = {"draft-model-path": setting.checkpoint or "DFLASH_CHECKPOINT"}
        return {"algorithm": "DFLASH", **path, "dflash-block-size": size + 1}
    if setting.drafter in ("prompt_lookup", "suffix"):
        notes.append(
            f"SGLang’s NGRAM drafts a tree from a trie of all texts seen, which is not `{setting.drafter}`: expect another acceptance than "
            "the measured one."
        )
        return {"algorithm": "NGRAM", "num-draft-tokens": size + 1}
    notes.append(no_drafter("SGLang", setting))
    return None
