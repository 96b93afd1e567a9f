"""The adapter of Kangaroo: it turns the states of a target's first layers into states for the target's head.

Liu et al., "Kangaroo: Lossless Self-Speculative Decoding via Double Early Exiting" (2024): one attention block without
an MLP, with a norm before and after it; embedding and head are the target's. The layout of the published checkpoints:
``layers.i.input_layernorm.weight``, ``layers.i.self_attn.{q,k,v,o}_proj.weight`` and ``norm.weight``, with a
Llama-style config. Published configs do not name the layer after which the adapter stands; ours do (``exit_layer``).

Letters in shapes: H hidden size, D head size, R rows, T earlier rows of the same text, N attention blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.fast.cpu.compiled_model import CompiledModel
from engine.methods.shared.attention_layer import Attention, rotary
from engine.methods.shared.module_columns import ModuleColumns, causal
from engine.model.language_model import LanguageModel
from engine.parts.kinds import PartKind
from engine.parts.module_part import ModulePart, sizes_of

PUBLISHED_EXIT = 2
"""The exit layer of an adapter whose config does not name it, as is the case in published configs. It is the value that
the authors use most often."""
_ANGLES = "rotary_emb.inv_freq"  # saved in old checkpoints, computed here

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""(block, queries [.., Hq, R, D], keys and values [.., Hkv, R, D] of the same rows) -> output [.., Hq, R, D]. The rows
attend to these keys and values and also to those of earlier rows, which the function has stored."""


@dataclass(frozen=True)
class AdapterConfig:
    hidden_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    num_hidden_layers: int = 1
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10000.0
    exit_layer: int = PUBLISHED_EXIT
    """The number of the target's layers that run before the adapter."""

    @classmethod
    def of(cls, raw: Mapping) -> AdapterConfig:
        """Return the sizes given by a config.json. Raises ValueError, whose message is the end of a sentence that the
        caller begins."""
        rope = raw.get("rope_parameters") or {}
        if type(rope) is not dict:
            raise ValueError("its rope_parameters are no object")
        entries = {"rope_theta": rope.get("rope_theta"), **raw}
        heads, width = entries.get("num_attention_heads"), entries.get("hidden_size")
        if isinstance(heads, int) and isinstance(width, int) and heads > 0:
            entries["num_key_value_heads"] = entries.get("num_key_value_heads") or heads
            entries["head_dim"] = entries.get("head_dim") or width // heads
        config = sizes_of(cls, entries)
        if config.head_dim % 2 or config.num_attention_heads % config.num_key_value_heads:
            raise ValueError("its heads cannot be rotated or shared")
        return config


class _Block(nn.Module):
    def __init__(self, config: AdapterConfig) -> None:
        super().__init__()
        self.self_attn = Attention(
            config.hidden_size,
            config.num_attention_heads,
            config.num_key_value_heads,
            config.head_dim,
        )
        self.input_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)

    def forward(self, rows: Tensor, angles: tuple[Tensor, Tensor], attend) -> Tensor:
        return rows + self.self_attn(self.input_layernorm(rows), angles, attend)


class Adapter(ModulePart):
    """A Kangaroo adapter; its weights have the names of the published checkpoints.

    make_reader: a function that makes, for a new text, a faster reader than ``AdapterReader``; None if there is no
    faster one. It is set when the adapter is opened.
    """

    key, noun = "adapter", "Kangaroo adapter"
    make_reader: Callable[[], AdapterReader] | None = None

    def __init__(self, config: AdapterConfig) -> None:
        super().__init__()
        self.config = config
        self.layers = nn.ModuleList(_Block(config) for _ in range(config.num_hidden_layers))
        self.norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)

    @classmethod
    def of_files(cls, config, tensors, target):
        own = AdapterConfig.of(config)
        if own.exit_layer >= target.layers:
            raise ValueError(
                f"it stands behind {own.exit_layer} layers of the target's {target.layers}"
            )
        return cls(own)

    @classmethod
    def tensors_of(cls, config, tensors):
        return {name: tensor for name, tensor in tensors.items() if not name.endswith(_ANGLES)}

    def settle(self, config, target, folder):
        width = self.config.hidden_size
        if width != target.hidden_size:
            raise ValueError(f"its hidden size is {width}, the target's {target.hidden_size}")

    def fields(self):
        return {"architectures": ["AdapterModel"], "model_type": "llama", **asdict(self.config)}

    @classmethod
    def tiny(cls, target, opener=None):
        """Return an untrained adapter that follows the target's first layer."""
        config = AdapterConfig(target.hidden_size, 2, 1, 8, exit_layer=1)
        return cls(config).eval().requires_grad_(False)

    def reader(self, target: LanguageModel) -> AdapterReader:
        """Return a reader for a new text."""
        return self.make_reader() if self.make_reader else AdapterReader(self, target)

    def forward(self, states: Tensor) -> Tensor:
        """Map hidden states [B, R, H] of the target's first layers, for the first R tokens of B texts, to states [B, R,
        H] for the target's head."""

        def attend(block: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(
                queries, keys, values, is_causal=True, enable_gqa=True
            )

        return self.through(states, torch.arange(states.shape[-2], device=states.device), attend)

    def through(self, states: Tensor, places: Tensor, attend: Attend) -> Tensor:
        """Map rows [.., R, H] at positions [R] of the text to states [.., R, H] for the target's head."""
        config = self.config
        angles = rotary(places, config.head_dim, config.rope_theta, states.dtype)
        for index, block in enumerate(self.layers):
            states = block(states, angles, partial(attend, index))
        return self.norm(states)


class AdapterReader:
    """Runs an adapter's module over one text, row by row, and caches keys and values; the last rows can be removed
    again. length: the number of rows so far."""

    length: int = 0

    def __init__(self, adapter: Adapter, target: LanguageModel) -> None:
        self._adapter, self._target = adapter, target
        self._columns = ModuleColumns.of(len(adapter.layers))

    def logits(self, states: Tensor) -> Tensor:
        """Append rows [R, H]; return the logits [1, V] that the target's head gives after the last of these rows."""
        return self._target.head(self.read(states)[-1:])

    @torch.no_grad()
    def read(self, states: Tensor) -> Tensor:
        """Append rows [R, H]; return their states [R, H] for the target's head."""
        start, rows = self.length, len(states)
        attend = self._columns.attention(start, rows, causal(rows, start, states.device))
        self.length = start + rows
        places = torch.arange(start, self.length, device=states.device)
        return self._adapter.through(states, places, attend)

    def rewind(self, length: int) -> None:
        """Remove all rows after the first ``length``."""
        self.length = min(self.length, length)


def _load(path: str, target: LanguageModel, dtype, device: str) -> Adapter:
    """Open an adapter. If the target's passes are compiled, the adapter runs by compiled passes as well, which include
    the target's head; otherwise the adapter runs as a module."""
    adapter = Adapter.open(path, target, dtype, device)
    if isinstance(target, CompiledModel):
        from engine.methods.kangaroo.fast import compiled_readers

        adapter.make_reader = compiled_readers(adapter, target)
    return adapter


KIND = PartKind(Adapter.key, Adapter.noun, _load, Adapter.tiny)
