"""Arguments of ``generate`` in transformers (as of 5.23), as lines of Python.

transformers takes the number of drafted tokens from the draft model's generation config; if this number is passed as an
argument of ``generate``, it is ignored.
"""

from __future__ import annotations

from engine.bridges.export_words import PLACE, no_block_rule, no_drafter, no_tree
from engine.bridges.recommended import Recommended

NO_SYNTHETIC = "transformers has no mode with a given acceptance."
ONE_TEXT = "transformers drafts for one text at a time, with chains only."


def transformers_arguments(setting: Recommended) -> tuple[str, str, list[str]]:
    notes: list[str] = []
    lines = _drafting(setting, notes)
    if lines is None:
        return "", "", notes
    if setting.verifier == "block":
        notes.append(no_block_rule("transformers"))
    return "\n".join(lines), "", [*notes, ONE_TEXT, NO_SYNTHETIC]


def _drafting(setting: Recommended, notes: list[str]) -> list[str] | None:
    if setting.drafter == "chain":
        notes.append(
            "Each of these three is read from the draft’s generation config. The threshold is 0, so that the draft does not stop early: "
            "transformers has another way to stop than Draftscope’s chain."
        )
        model = repr(setting.checkpoint or setting.draft or "DRAFT_MODEL")
        return [
            f"draft = AutoModelForCausalLM.from_pretrained({model})",
            f"draft.generation_config.num_assistant_tokens = {setting.size}",
            'draft.generation_config.num_assistant_tokens_schedule = "constant"',
            "draft.generation_config.assistant_confidence_threshold = 0.0",
            "target.generate(**inputs, assistant_model=draft)",
        ]
    if setting.drafter == "prompt_lookup":
        least = setting.options.get("min_ngram", 1)
        if least != 1:
            notes.append(f"transformers also looks up runs shorter than {least} tokens, down to 1.")
        most = setting.options.get("max_ngram", 5)
        return [
            f"target.generate(**inputs, prompt_lookup_num_tokens={setting.size}, max_matching_ngram_size={most})"
        ]
    if setting.drafter == "mtp" and setting.width > 1:
        notes.append(no_tree("transformers", setting))
        return None
    if setting.drafter == "mtp":
        notes.append(
            "transformers drafts as many tokens as the checkpoint has MTP layers; the size cannot be set."
        )
        return ["target.generate(**inputs, use_mtp=True)"]
    if setting.drafter == "dflash":
        if not setting.checkpoint:
            notes.append(PLACE.format("DFLASH_CHECKPOINT"))
        notes.append(
            "transformers drafts the checkpoint’s whole block, and opens only DFlash drafters that it has a class for."
        )
        model = repr(setting.checkpoint or "DFLASH_CHECKPOINT")
        return [
            f"draft = AutoModelForCausalLM.from_pretrained({model})",
            'target.generate(**inputs, assistant_model=draft, speculation_type="dflash")',
        ]
    notes.append(no_drafter("transformers", setting))
    return None
