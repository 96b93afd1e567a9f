"""vLLM's ``--speculative-config`` (fields as of vLLM 0.32, ``vllm/config/speculative.py``)."""

from __future__ import annotations

import json

from engine.bridges.export_words import (
    NO_RATES,
    PLACE,
    WHICH_EAGLE,
    no_drafter,
    no_tree,
    texts,
)
from engine.bridges.recommended import TREES, Recommended

START = (
    "Start the server with it: `vllm serve TARGET --speculative-config '…'` (vLLM 0.32). Put the folder or Hub name of your target in the "
    "place of TARGET"
)


def vllm_config(setting: Recommended) -> tuple[str, str, list[str]]:
    notes = [START + "."]
    if setting.drafter == "chain":
        setting = setting.in_full
    config = _drafting(setting, notes)
    if config is None:
        return "", "", notes[1:]
    schedule = {}
    if setting.off_above is not None:
        last = setting.off_above
        schedule = {
            "num_speculative_tokens_per_batch_size": [
                [1, last, setting.size],
                [last + 1, last + 1, 0],
            ]
        }
        notes.append(
            f"Above {texts(last)} at a time the schedule drafts nothing; vLLM keeps its last entry for all larger batches. "
            "That number is this machine's: leave the schedule out, or measure it again, where the server runs."
        )
    rule = {"rejection_sample_method": "block"} if setting.verifier == "block" else {}
    synthetic = ""
    if setting.rates is None:
        notes.append(NO_RATES)
    else:
        rates = {
            "rejection_sample_method": "synthetic",
            "synthetic_acceptance_rates": setting.rates,
        }
        synthetic = json.dumps({**config, **rates})
    return json.dumps({**config, **schedule, **rule}), synthetic, notes


def _drafting(setting: Recommended, notes: list[str]) -> dict | None:
    size = {"num_speculative_tokens": setting.size}
    options = setting.options
    if setting.drafter in ("chain", "pard"):
        how = "probabilistic" if setting.temperature else "greedy"
        config = {
            "method": "draft_model",
            "model": "DRAFT_MODEL",
            **size,
            "draft_sample_method": how,
        }
        if setting.drafter == "pard":
            checkpoint, config = setting.checkpoint, {**config, "parallel_drafting": True}
        else:
            checkpoint = setting.checkpoint or setting.draft
        if checkpoint:
            notes[0] = f"{START}, and that of your drafter in the place of {checkpoint}."
        else:
            notes.append(PLACE.format("DRAFT_MODEL"))
        return {**config, "model": checkpoint} if checkpoint else config
    if setting.drafter in TREES and setting.width > 1:
        notes.append(no_tree("vLLM", setting))
        return None
    if setting.drafter == "eagle":
        if not setting.checkpoint:
            notes.append(PLACE.format("EAGLE_CHECKPOINT"))
        if setting.eagle3 is None:
            notes.append(WHICH_EAGLE.format("method", "eagle3"))
        method = "eagle3" if setting.eagle3 else "eagle"
        return {"method": method, "model": setting.checkpoint or "EAGLE_CHECKPOINT", **size}
    if setting.drafter == "dflash":
        if not setting.checkpoint:
            notes.append(PLACE.format("DFLASH_CHECKPOINT"))
        return {"method": "dflash", "model": setting.checkpoint or "DFLASH_CHECKPOINT", **size}
    if setting.drafter == "mtp":
        return {"method": "mtp", **size}
    if setting.drafter == "prompt_lookup":
        most, least = options.get("max_ngram", 5), options.get("min_ngram", 1)
        return {"method": "ngram", **size, "prompt_lookup_max": most, "prompt_lookup_min": least}
    if setting.drafter == "suffix":
        notes.append(
            "vLLM’s suffix decoding drafts one path where ours drafts a tree, and trusts a match by another "
            "formula, so it will keep another share of its drafts."
        )
        return {
            "method": "suffix",
            **size,
            "suffix_decoding_max_tree_depth": 24,
            "suffix_decoding_max_cached_requests": 10000
            if options.get("earlier_texts", True)
            else 0,
            "suffix_decoding_max_spec_factor": float(options.get("factor", 2.0)),
            "suffix_decoding_min_token_prob": float(options.get("least_chance", 0.25)),
        }
    notes.append(no_drafter("vLLM", setting))
    return None
