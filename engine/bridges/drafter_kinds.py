"""The kind of drafter in a checkpoint, found from its configuration and tensor names, and the engines that support the
kind."""

from __future__ import annotations

import re
from typing import NamedTuple

from engine.bridges.checkpoint_files import Described
from engine.parts.digest import FIELD


class DrafterKind(NamedTuple):
    """What is known of one kind of drafter.
    title: the kind with its article. what: a sentence on how it drafts. engines: engine -> the setting that selects the
    kind there; engines that are not listed are not known to support it. here: flags of ``python -m engine run``; "" if
    Draftscope cannot open it. tree: whether Draftscope drafts trees with it."""

    title: str
    what: str
    engines: dict[str, str] = {}
    here: str = ""
    tree: bool = False


KINDS = {
    "causal": DrafterKind(
        "a causal language model",
        "As a draft model it writes ahead, one token after another, and needs the target’s tokens.",
        {
            "vLLM": "draft_model",
            "SGLang": "STANDALONE",
            "llama.cpp": "draft-simple",
            "transformers": "assistant_model",
        },
        "--draft DIR --drafter chain",
    ),
    "eagle": DrafterKind(
        "an EAGLE-1 or EAGLE-2 drafter",
        "One layer predicts the target’s next hidden state from the last one and the token.",
        {"vLLM": "eagle", "SGLang": "EAGLE"},
        "--part eagle=DIR --drafter eagle",
        tree=True,
    ),
    "eagle3": DrafterKind(
        "an EAGLE-3 drafter",
        "One layer reads hidden states of three layers of the target, fused.",
        {"vLLM": "eagle3", "SGLang": "EAGLE3", "llama.cpp": "draft-eagle3"},
        "--part eagle=DIR --drafter eagle",
        tree=True,
    ),
    "eagle4": DrafterKind(
        "an EAGLE-4 drafter", "Its harness builds a tree by a measured cost.", tree=True
    ),
    "peagle": DrafterKind(
        "a P-EAGLE drafter",
        "An EAGLE-3 layer that drafts all tokens in one pass, from mask tokens.",
        {"vLLM": "eagle3 with parallel_drafting: true"},
        "--part parallel_eagle=DIR --drafter parallel_eagle",
        tree=True,
    ),
    "pard": DrafterKind(
        "a PARD draft model",
        "A causal language model that drafts all tokens in one pass, from mask tokens.",
        {"vLLM": "draft_model with parallel_drafting: true"},
        "--part pard=DIR --drafter pard",
    ),
    "dflash": DrafterKind(
        "a DFlash drafter",
        "It fills a whole block of masks in one pass, from the target’s hidden states.",
        {"vLLM": "dflash", "SGLang": "DFLASH", "llama.cpp": "draft-dflash"},
        "--diffusion DIR --drafter dflash",
    ),
    "dflash2": DrafterKind(
        "a DFlash2 drafter",
        "DFlash with convolutions, and a selector that walks through the candidates of the block.",
        {"vLLM": "dflash", "SGLang": "DFLASH"},
        "--diffusion DIR --part lattice=DIR --drafter lattice, if it has no convolutions",
    ),
    "dspark": DrafterKind(
        "a DSpark drafter",
        "A block in one pass, a Markov head that ties its tokens together, and perhaps a confidence head.",
        {"vLLM": "dspark", "SGLang": "DSPARK", "llama.cpp": "draft-dspark"},
        "--diffusion DIR --part dspark=DIR --drafter dspark",
    ),
    "domino": DrafterKind(
        "a Domino drafter",
        "DFlash with a recurrent correction of its logits.",
        {"SGLang": "DFLASH"},
    ),
    "lilicorr": DrafterKind(
        "a LiLiCorr drafter", "DFlash with a small transformer over the candidates of the block."
    ),
    "xpress": DrafterKind(
        "an XPress drafter", "DFlash with a causal refiner, solved by repeated passes."
    ),
    "mtp": DrafterKind(
        "an MTP layer, taken out of a base checkpoint",
        "It is used again for every token after the first.",
        {"vLLM": "mtp", "SGLang": "NEXTN", "llama.cpp": "draft-mtp"},
        "--part mtp=DIR --drafter mtp",
        tree=True,
    ),
    "medusa": DrafterKind(
        "a set of Medusa heads",
        "Each head guesses one later token from the target’s last state.",
        {"vLLM": "medusa"},
        "--part medusa=DIR --drafter medusa",
        tree=True,
    ),
    "hydra": DrafterKind(
        "a set of Hydra heads",
        "Each head guesses one later token, and reads the tokens drafted before it.",
        here="--part hydra=DIR --drafter hydra",
        tree=True,
    ),
    "mlp_speculator": DrafterKind(
        "an MLP speculator",
        "Small layers guess the next tokens, one after another.",
        {"vLLM": "mlp_speculator"},
    ),
    "gemma4_assistant": DrafterKind(
        "a Gemma 4 assistant",
        "A small model that reads the target’s own cache.",
        {"vLLM": "mtp", "transformers": "assistant_model"},
    ),
    "adapter": DrafterKind(
        "an adapter (LoRA)", "The target drafts for itself through it.", {"SGLang": "UNO"}
    ),
    "part": DrafterKind(
        "a part that Draftscope trained for one target",
        "Its own drafter uses it.",
        here="--part ROLE=DIR --drafter KEY",
    ),
    "other": DrafterKind(
        "of a kind that is not known here", "Neither its configuration nor its tensors say more."
    ),
}
SPECULATORS = "speculators_model_type"
CAUSAL = ("ForCausalLM", "ForConditionalGeneration")
MARKS = {
    "dspark": ("markov_rank", "markov_head_type"),
    "xpress": ("xpress_rank",),
    "dflash2": ("selector_rank", "selector_top_k"),
    "lilicorr": ("lilicorr_enabled",),
    "domino": ("gru_hidden_dim",),
}
"""Kind of drafter in DFlash's family -> the configuration entries that only this kind has."""
CLASSES = (
    ("Eagle4", "eagle4"),
    ("Eagle3", "eagle3"),
    ("EagleDraft", "eagle"),
    ("Eagle", "eagle"),
    ("DSpark", "dspark"),
    ("DFlash", "dflash"),
    ("Medusa", "medusa"),
    ("Hydra", "hydra"),
    ("MLPSpeculator", "mlp_speculator"),
    ("Gemma4Assistant", "gemma4_assistant"),
    ("Gemma4UnifiedAssistant", "gemma4_assistant"),
)
"""A piece of the name of an architecture class -> the kind; the first piece that occurs in the name decides."""
_MEDUSA = re.compile(r"(medusa_head\.)?\d{1,3}\.\d{1,3}\.(linear\.)?weight")


def kind_of(files: Described) -> str:
    """The kind of the drafter, a key of ``KINDS``."""
    config, named = files.config, files.config.get("architectures")
    algorithm = config.get(SPECULATORS)
    if isinstance(algorithm, str):
        return algorithm if algorithm in KINDS else "other"
    if "mask_hidden" in files.shapes:
        return "peagle"
    classes = [name for name in named if isinstance(name, str)] if isinstance(named, list) else []
    by_class = next((kind for word, kind in CLASSES if any(word in name for name in classes)), "")
    special = config.get("dflash_config")
    if isinstance(special, dict) or config.get("model_type") == "dflash" or by_class == "dflash":
        return _of_block({**config, **(special if isinstance(special, dict) else {})}, files)
    if not by_class and FIELD in config and not any(name.endswith(CAUSAL) for name in classes):
        return "part"
    return by_class or _of_tensors(files, classes)


def _of_block(config: dict, files: Described) -> str:
    if any(key.startswith("candidate_selector.") for key in files.shapes):
        return "dflash2"
    if config.get("projector_type") == "domino":
        return "domino"
    return next((kind for kind, marks in MARKS.items() if any(map(config.get, marks))), "dflash")


def _of_tensors(files: Described, classes: list[str]) -> str:
    """The kind by the names of the tensors. The class names in the configuration are only used if no tensor name
    decides, because an early drafter's configuration is a copy of its target's."""
    shapes = files.shapes
    if "fc.weight" in shapes:
        if any(key.startswith(("midlayer.", "layers.0.hidden_norm")) for key in shapes):
            return "eagle3"
        if any(key.startswith("layers.0.") for key in shapes):
            return "eagle"
    if any(key.startswith("hydra_mlp.") for key in shapes):
        return "hydra"
    if shapes and all(_MEDUSA.match(key) or ".linear." in key for key in shapes):
        return "medusa"
    if any(key.startswith("mtp_layers.") for key in shapes):
        return "mtp"
    if files.adapter:
        return "adapter"
    if any(name.endswith(CAUSAL) for name in classes):
        return "pard" if files.number("pard_token") is not None else "causal"
    return "other"
