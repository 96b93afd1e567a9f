"""Reads the published layouts of DFlash's family, and translates each into DFlash's own layout.

All layouts have the same backbone. Their additional heads are opened separately, from the same folder
(``engine.methods.dspark.part``, ``engine.methods.lattice.part``). The layout of speculators (0.9) has the sizes in
``transformer_layer_config``. Its layer ids are indices of hidden_states, where 0 is the embedding; DFlash's layer ids
count layers from 0. A speculators drafter with a smaller vocabulary has a head ``lm_head`` of its own, and a table
``d2t`` of offsets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

SPECULATORS = "speculators_model_type"
ANCHORED = "sample_from_anchor"
KNOWN = ("dflash", "dspark", "dflash2")
HEADS = ("markov_head.", "confidence_head.", "candidate_selector.")
BACKBONE = ("layers.", "fc.", "hidden_norm.", "norm.", "lm_head.", "mask_embedding", "d2t", "t2d")
"""HEADS: the prefixes of the names of tensors that belong to additional heads. BACKBONE: those of the backbone."""
BORROWED = ("embed_tokens.weight", "verifier_lm_head.weight", "verifier_norm.weight")
"""The names of tensors in the files that are copies of the target's tensors."""


@dataclass
class DFlashConfig:
    """The sizes of a block drafter. vocab_size: the size of the target's vocabulary."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    block_size: int
    target_layer_ids: tuple[int, ...]  # features are hidden_states[i + 1], outputs of these layers
    mask_token_id: int
    num_target_layers: int = 0
    max_position_embeddings: int = 1024
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10000.0
    draft_vocab_size: int = 0  # number of tokens in a trimmed head; 0: the target's whole head
    sample_from_anchor: bool = False  # whether the root's row also drafts a token, the one after it

    @classmethod
    def of(cls, raw: Mapping) -> DFlashConfig:
        """Return the sizes in a parsed config.json. Raises ValueError, KeyError, TypeError or AttributeError if the
        object is not the config of a block drafter."""
        entries = plain(raw)
        rope = entries.get("rope_parameters") or {}
        entries["rope_theta"] = entries.get("rope_theta") or rope.get("rope_theta", 10000.0)
        usual = entries["hidden_size"] // max(1, entries["num_attention_heads"])
        entries["head_dim"] = entries.get("head_dim") or usual
        entries["target_layer_ids"] = tuple(entries["target_layer_ids"])
        return cls(**{name: entries[name] for name in cls.__dataclass_fields__ if name in entries})

    @property
    def first_row(self) -> int:
        """The index of the first row of a block that drafts a token."""
        return 0 if self.sample_from_anchor else 1

    @property
    def drafts(self) -> int:
        """The most tokens that a block drafts."""
        return self.block_size - self.first_row


def plain(raw: Mapping) -> dict:
    """Return the entries of a config under DFlash's names. Raises KeyError if an entry is missing, and ValueError if an
    entry cannot be used; the error's message names this entry."""
    kind = raw.get(SPECULATORS)
    if kind is None:
        return _of_authors(raw)
    if kind not in KNOWN:
        raise ValueError(f"{SPECULATORS}: {kind!r} is not one of {', '.join(KNOWN)}")
    if raw.get("mask_token_id") is None:
        raise ValueError("mask_token_id: it does not say which token the mask is")
    states = raw.get("aux_hidden_state_layer_ids")
    if not states:
        raise ValueError("aux layer ids: it does not say which layers of the target it reads")
    if kind == "dspark" and ANCHORED not in raw:
        raise ValueError(
            f"{ANCHORED}: the entry is missing, and engines disagree on what that means; write it down"
        )
    inner = dict(raw["transformer_layer_config"])
    own = raw.get("draft_vocab_size") or inner["vocab_size"]
    inner |= {
        "block_size": raw["block_size"],
        "mask_token_id": raw["mask_token_id"],
        "target_layer_ids": [state - 1 for state in states],
        ANCHORED: bool(raw.get(ANCHORED, False)),
        "draft_vocab_size": own if own < inner["vocab_size"] else 0,
    }
    return _checked(inner)


def _of_authors(raw: Mapping) -> dict:
    entries = {**raw, **(raw.get("dflash_config") or {})}
    spark = any("DSpark" in str(name) for name in raw.get("architectures") or ())
    entries.setdefault(ANCHORED, spark)  # a block of DSpark's authors drafts from the root's row on
    return _checked(entries)


def _checked(entries: dict) -> dict:
    if "sliding_attention" in (entries.get("layer_types") or ()):
        raise ValueError("layer_types: layers with a sliding window are not read here")
    return entries


def backbone(tensors: Mapping[str, Tensor], vocabulary: int, cut: bool) -> dict[str, Tensor]:
    """Return the tensors of the backbone, without the tensors of additional heads and without copies of the target's
    tensors. cut: whether the drafter has a trimmed head, for a part of the ``vocabulary`` tokens. Raises ValueError for
    layers or tables that cannot be used."""
    weights = {
        name: tensor
        for name, tensor in tensors.items()
        if not name.startswith(HEADS) and name not in BORROWED
    }
    if any("_conv." in name for name in weights):
        raise ValueError("convolutions: DFlash2's layers with convolutions are not built here")
    offsets = weights.pop("d2t", None)
    if not cut:
        weights.pop("lm_head.weight", None)
        weights.pop("t2d", None)
    elif offsets is not None:
        tokens = offsets.long() + torch.arange(len(offsets))
        if len(tokens) and not 0 <= int(tokens.min()) <= int(tokens.max()) < vocabulary:
            raise ValueError("d2t: it names tokens that the vocabulary does not have")
        weights["t2d"] = torch.zeros(vocabulary, dtype=torch.bool).index_fill(0, tokens, True)
    return weights
