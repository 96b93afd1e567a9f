"""The configuration of an EAGLE cell, parsed from the config.json of any published layout.

Layouts: ``eagle`` (EAGLE-1 and 2), ``eagle3`` (the authors' EAGLE-3), ``speculators`` (vLLM's, with
``speculators_model_type: eagle3``), ``peagle`` (vLLM's, with ``speculators_model_type: peagle``) and ``mtp`` (a
multi-token-prediction layer, in the checkpoint of its target or taken out of it). Which biases and norms a cell has is
not taken from the config, but from the names of its tensors (``engine.methods.shared.eagle_layout``), because many
configs are copies of the target's and are wrong about them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import torch
from transformers import LlamaConfig
from transformers.activations import ACT2FN
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

Layout = Literal["eagle", "eagle3", "speculators", "peagle", "mtp"]
UNSTEADY = ("dynamic", "longrope")
"""Kinds of rotary angles that depend on the length of the text. Cells with such angles are refused, because cached keys
would be wrong once the text is longer."""
FUSED = ("eagle3", "speculators", "peagle")
"""The layouts of cells that take the hidden states of several layers of the target."""
FUSED_LAYERS = 3
"""The number of target layers whose hidden states an EAGLE-3 cell takes."""
SPECULATORS = "speculators_model_type"
"""The entry of config.json by which vLLM's ``speculators`` names the kind of drafter."""
PUBLISHED = {
    "speculators": ("eagle3", "Eagle3DraftModel"),
    "peagle": ("peagle", "PEagleDraftModel"),
}
"""Layout -> the value of the entry ``SPECULATORS``, and the name of the architecture."""
SAMPLING = "feature_sampling_size"
"""The entry of config.json for the inner size of the feature sampler (FSPAD)."""
MASKS = ("mask_token_id", "pard_token", "ptd_token_id")
"""The entries of config.json that may name the mask token, which takes the position of a token that is not written yet.
The first is the entry of ``speculators``, the others are entries that vLLM accepts."""
MOST_NUMBER = 1 << 24
MOST = {"num_attention_heads": 1024, "head_dim": 4096, "num_hidden_layers": 64}
"""The largest value that is accepted for each of these sizes in a configuration; ``MOST_NUMBER`` is the limit for all
other sizes."""


@dataclass(frozen=True)
class EagleConfig:
    """The configuration of an EAGLE cell.

    hidden_size: the size H of the cell's states. target_hidden_size: the size Ht of the target's features. vocab_size:
    the size of the target's vocabulary. feature_layers: indices of the target's hidden_states; (): see ``layers_of``.
    rope: the config's entries on rotary positions. sampling_size: the inner size of FSPAD's feature sampler; 0: no
    sampler. norm_before_residual: whether the residual of an EAGLE-3 cell's first layer starts at the normalised input.
    norm_output: whether the state that enters the next pair is normalised, like the input of the head (EAGLE-3.1, MTP).
    mask_token: the token that takes the position of a token that is not written yet (P-EAGLE); None: the config names
    no such token.
    """

    layout: Layout
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    num_hidden_layers: int = 1
    target_hidden_size: int = 0
    draft_vocab_size: int = 0
    rms_norm_eps: float = 1e-6
    hidden_act: str = "silu"
    max_position_embeddings: int = 2048
    norm_before_residual: bool = False
    feature_layers: tuple[int, ...] = ()
    rope: Mapping[str, object] = field(default_factory=dict)
    sampling_size: int = 0
    norm_output: bool = False
    mask_token: int | None = None

    @property
    def fused(self) -> bool:
        """Whether the cell takes the hidden states of several target layers, as EAGLE-3 does, and not only the last
        hidden state."""
        return self.layout in FUSED

    def layers_of(self, target_layers: int) -> tuple[int, ...]:
        """Return the indices of the target's hidden_states that the cell takes, for a target of L = ``target_layers``
        layers. A cell of a fused layout takes ``feature_layers``; if there are none, it takes hidden_states 2, L // 2
        and L - 3. Any other cell takes the last hidden state, after the final norm."""
        if not self.fused:
            return (target_layers,)
        return self.feature_layers or (2, target_layers // 2, target_layers - 3)

    def inverse_frequencies(self) -> tuple[list[float], float]:
        """Return the head_dim / 2 inverse frequencies of the rotary positions, and the factor by which cos and sin are
        multiplied. Raises ValueError for a kind of rotary positions that a cell cannot use."""
        llama = LlamaConfig(
            hidden_size=self.hidden_size,
            num_attention_heads=self.num_attention_heads,
            head_dim=self.head_dim,
            max_position_embeddings=self.max_position_embeddings,
            rope_parameters={"rope_theta": 10000.0, **self.rope},
        )
        kind = llama.rope_parameters["rope_type"]
        if kind in UNSTEADY:
            raise ValueError(f"its rotary positions are {kind}, which depend on the text's length")
        if kind == "default":
            base, size = float(llama.rope_parameters["rope_theta"]), self.head_dim
            return [base ** (-place / size) for place in range(0, size, 2)], 1.0
        if kind not in ROPE_INIT_FUNCTIONS:
            raise ValueError(f"its rotary positions are of the unknown kind {kind!r}")
        try:
            with torch.device("cpu"):  # the cell may be made on meta, which has no numbers
                frequencies, factor = ROPE_INIT_FUNCTIONS[kind](llama)
        except (KeyError, TypeError, ArithmeticError) as error:
            raise ValueError(f"its rotary positions of the kind {kind} are incomplete") from error
        if 2 * len(frequencies) != self.head_dim:
            raise ValueError("its rotary positions turn a part of each head only")
        return frequencies.tolist(), float(factor)

    @classmethod
    def read(cls, raw: dict, layout: Layout, layers: int = 1) -> EagleConfig:
        """Return the configuration in the JSON object ``raw`` of this layout. layers: the number of layers that the
        tensors have; it is used instead of the config's entry where configs give the target's number of layers. Raises
        KeyError, TypeError or ValueError if an entry is missing or wrong."""
        inner = raw["transformer_layer_config"] if SPECULATORS in raw else raw
        if layout == "mtp":
            inner = inner.get("text_config", inner)
        heads, hidden = inner["num_attention_heads"], inner["hidden_size"]
        config = cls(
            layout=layout,
            vocab_size=inner["vocab_size"],
            hidden_size=hidden,
            intermediate_size=inner["intermediate_size"],
            num_attention_heads=heads,
            num_key_value_heads=inner.get("num_key_value_heads") or heads,
            head_dim=inner.get("head_dim") or hidden // max(1, heads),
            num_hidden_layers=layers
            if layout in ("eagle3", "mtp")
            else inner.get("num_hidden_layers", 1),
            target_hidden_size=raw.get("target_hidden_size") or hidden,
            draft_vocab_size=raw.get("draft_vocab_size") or inner["vocab_size"],
            rms_norm_eps=float(inner.get("rms_norm_eps", 1e-6)),
            hidden_act=inner.get("hidden_act", "silu"),
            max_position_embeddings=inner.get("max_position_embeddings", 2048),
            norm_before_residual=bool(raw.get("norm_before_residual", False)),
            feature_layers=_feature_layers(raw),
            rope=_rope(inner),
            sampling_size=raw.get(SAMPLING) or 0,
            norm_output=layout == "mtp" or (layout in FUSED and bool(raw.get("norm_output"))),
            mask_token=next((raw[name] for name in MASKS if raw.get(name) is not None), None),
        )
        config.check()
        return config

    def check(self) -> None:
        """Raise ValueError if a size or another entry of this configuration cannot be used."""
        sizes = (
            *("vocab_size", "hidden_size", "intermediate_size", "num_attention_heads"),
            *("num_key_value_heads", "head_dim", "num_hidden_layers", "target_hidden_size"),
            *("draft_vocab_size", "max_position_embeddings"),
        )
        for name in sizes:
            value = getattr(self, name)
            if not isinstance(value, int) or not 0 < value <= MOST.get(name, MOST_NUMBER):
                raise ValueError(f"{name} is {value!r}")
        wide = self.sampling_size
        if not isinstance(wide, int) or not 0 <= wide <= MOST_NUMBER or (wide and self.fused):
            raise ValueError(f"{SAMPLING} is {wide!r}")
        if self.num_attention_heads % self.num_key_value_heads or self.head_dim % 2:
            raise ValueError("its heads do not divide")
        if self.fused and len(self.feature_layers) not in (0, FUSED_LAYERS):
            raise ValueError(
                f"it names {len(self.feature_layers)} feature layers, and a cell fuses {FUSED_LAYERS}"
            )
        mask = self.mask_token
        if mask is None and self.layout == "peagle":
            raise ValueError(f"{MASKS[0]} is missing")
        if mask is not None and not (isinstance(mask, int) and 0 <= mask < self.vocab_size):
            raise ValueError(f"{MASKS[0]} is {mask!r}")
        if self.hidden_act not in ACT2FN:
            raise ValueError(f"hidden_act is {self.hidden_act!r}")
        if not 0 < self.rms_norm_eps < 1:
            raise ValueError(f"rms_norm_eps is {self.rms_norm_eps}")

    def write(self) -> dict:
        """The JSON object of this configuration, in the form of its layout."""
        inner = {
            "model_type": "llama",
            **{name: getattr(self, name) for name in _PLAIN},
            "rope_parameters": dict(self.rope),
            "rope_theta": self.rope.get("rope_theta", 10000.0),
            "attention_bias": False,
            "tie_word_embeddings": False,
        }
        if self.layout == "mtp":
            head = {"architectures": ["MTPDraftModel"], SPECULATORS: "mtp"}
            return {**head, "num_nextn_predict_layers": 1, "transformer_layer_config": inner}
        outer = {"norm_before_residual": self.norm_before_residual} if self.fused else {}
        if self.fused:
            outer |= {"draft_vocab_size": self.draft_vocab_size}
        if self.norm_output:
            outer["norm_output"] = True
        if self.sampling_size:
            outer[SAMPLING] = self.sampling_size
        if self.feature_layers:
            outer["eagle_aux_hidden_state_layer_ids"] = list(self.feature_layers)
        if self.mask_token is not None:
            outer[MASKS[0]] = self.mask_token
        if self.layout in PUBLISHED:
            kind, name = PUBLISHED[self.layout]
            head = {"architectures": [name], SPECULATORS: kind}
            return {**head, **outer, "transformer_layer_config": inner}
        name = "LlamaForCausalLMEagle3" if self.fused else "LlamaForCausalLMEagle"
        return {"architectures": [name], **inner, **outer, "dtype": "float32"}


_PLAIN = (
    *("vocab_size", "hidden_size", "intermediate_size", "num_attention_heads"),
    *("num_key_value_heads", "head_dim", "num_hidden_layers", "rms_norm_eps", "hidden_act"),
    "max_position_embeddings",
)


def _feature_layers(raw: dict) -> tuple[int, ...]:
    """Return the indices of hidden_states that a config names; () if it names none. vLLM's entry already has indices of
    hidden_states. SGLang's entry, in ``eagle_config``, has indices of layers whose outputs are taken, so 1 is added:
    [1, 46, 90] are hidden_states 2, 47 and 91. Raises ValueError for values other than small integers."""
    named, shift = raw.get("eagle_aux_hidden_state_layer_ids"), 0
    if not named:
        named = (raw.get("eagle_config") or {}).get("eagle_aux_hidden_state_layer_ids")
        shift = 1
    layers = tuple(named or ())
    if not all(isinstance(layer, int) and 0 <= layer < 1024 for layer in layers):
        raise ValueError(f"its feature layers are {list(layers)}")
    return tuple(layer + shift for layer in layers)


def _rope(inner: dict) -> dict:
    """Return the rotary entries of a config in the form of transformers 5, from the entry ``rope_parameters`` or from
    the older entry ``rope_scaling``. Raises ValueError for a wrong ``rope_theta``."""
    entries = {**(inner.get("rope_scaling") or {}), **(inner.get("rope_parameters") or {})}
    if "type" in entries:
        entries.setdefault("rope_type", entries.pop("type"))
    theta = entries.get("rope_theta") or inner.get("rope_theta") or 10000.0
    if not isinstance(theta, int | float) or not 0 < theta < math.inf:
        raise ValueError(f"rope_theta is {theta!r}")
    return {"rope_type": "default", **entries, "rope_theta": float(theta)}


def tiny_config(target, layout: Layout = "eagle") -> EagleConfig:
    """The configuration of a tiny cell of one layer for this target."""
    return EagleConfig(
        layout=layout,
        norm_output=layout == "mtp",
        vocab_size=target.vocab_size,
        hidden_size=target.hidden_size,
        target_hidden_size=target.hidden_size,
        intermediate_size=24,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        rope={"rope_type": "default", "rope_theta": 10000.0},
    )
