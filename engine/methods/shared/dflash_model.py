"""The block-diffusion drafter: one denoising pass over a block of masks, conditioned on the target's hidden states.

The architecture is that of the published DFlash checkpoints ("DFlash: Block Diffusion for Flash Speculative Decoding",
2026). Tensor names, `config.json` and the meaning of `target_layer_ids` are the same, so published drafters can be
loaded. The embeddings and the LM head are the target's and are not part of the model. Beyond the published
architecture, a model may have a table ``t2d``; it then uses only the rows of the head for the tokens in this table.

A block has B rows. Row 0 is the root (the last committed token, at position L of the text). Rows 1 .. B-1 are mask
tokens at positions L+1 .. L+B-1. After the final norm and the target's LM head, row i gives the distribution of the
token at position L+i. The target's features of the tokens at 0 .. L-1 give keys and values in every layer. These are
computed once and cached, so no pass computes the prefix again.

Letters in shapes: H hidden size, n target layers that give features, T context rows (one per committed token), B block
rows, D head size, Hkv key/value heads, S sequences, A blocks per sequence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.errors import UserError
from engine.methods.shared.attention_layer import Attention, GatedMLP, KeyValue, rotary
from engine.methods.shared.dflash_layout import DFlashConfig, backbone
from engine.methods.shared.trimmed_head import TrimmedHead, trimmed_head
from engine.parts.module_part import ModulePart

if TYPE_CHECKING:
    from engine.model.language_model import LanguageModel

Head = Callable[[Tensor], Tensor]
MOST_LAYERS = 64


class DFlashAttention(Attention):
    def __init__(self, config: DFlashConfig):
        super().__init__(
            config.hidden_size,
            config.num_attention_heads,
            config.num_key_value_heads,
            config.head_dim,
            norm_eps=config.rms_norm_eps,
        )

    def forward(
        self, rows: Tensor, cos: Tensor, sin: Tensor, context: KeyValue, mask: Tensor | None = None
    ) -> Tensor:
        """Attention of the rows [..., R, H] over T context rows and over themselves -> [..., R, H]. mask: bool [..., 1,
        R, T + R], True where a row may attend; None: every row attends to all others."""
        queries = self.queries(rows, cos, sin)
        keys, values = (
            torch.cat(pair, dim=-2)
            for pair in zip(context, self.keys_values(rows, cos, sin), strict=True)
        )
        batched = queries.ndim == 4
        if not batched:
            queries, keys, values = queries[None], keys[None], values[None]
        out = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, enable_gqa=True)
        return self.joined(out if batched else out[0])


class DFlashLayer(nn.Module):
    def __init__(self, config: DFlashConfig):
        super().__init__()
        self.self_attn = DFlashAttention(config)
        self.mlp = GatedMLP(config.hidden_size, config.intermediate_size)
        self.input_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.post_attention_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)

    def forward(
        self, rows: Tensor, cos: Tensor, sin: Tensor, context: KeyValue, mask: Tensor | None = None
    ) -> Tensor:
        rows = rows + self.self_attn(self.input_layernorm(rows), cos, sin, context, mask)
        return rows + self.mlp(self.post_attention_layernorm(rows))


class DFlashModel(ModulePart):
    key, noun = "denoiser", "diffusion drafter"
    make_context = None
    """A function that makes the context of one text (``engine.methods.shared.block_context``). It is set when the
    drafter is opened; None: contexts run the plain module."""

    make_head = None
    """A function that turns a trimmed head into a faster function. It is set when the drafter is opened; None: the head
    runs as a module."""

    def __init__(self, config: DFlashConfig, own_head: bool = False):
        """own_head: whether the model has a trimmed head with weights of its own, instead of rows of the target's
        head."""
        super().__init__()
        self.config = config
        self.fc = nn.Linear(
            len(config.target_layer_ids) * config.hidden_size, config.hidden_size, bias=False
        )
        self.hidden_norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.layers = nn.ModuleList(DFlashLayer(config) for _ in range(config.num_hidden_layers))
        self.norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        if config.draft_vocab_size:
            self.register_buffer("t2d", torch.zeros(config.vocab_size, dtype=torch.bool))
        if own_head:
            self.lm_head = nn.Linear(config.hidden_size, config.draft_vocab_size, bias=False)
        self.own_head = own_head
        self._heads: WeakKeyDictionary[LanguageModel, Head] = WeakKeyDictionary()

    @classmethod
    def of_files(cls, config, tensors, target):
        sizes = DFlashConfig.of(config)
        if sizes.num_hidden_layers > MOST_LAYERS:
            raise ValueError(f"{sizes.num_hidden_layers} layers are too many")
        return cls(sizes, "lm_head.weight" in tensors)

    @classmethod
    def tensors_of(cls, config, tensors):
        sizes = DFlashConfig.of(config)
        return backbone(tensors, sizes.vocab_size, bool(sizes.draft_vocab_size))

    def settle(self, config, target, folder):
        own = self.config
        if own.draft_vocab_size:
            self.t2d = self.t2d.bool()
            if int(self.t2d.sum()) != own.draft_vocab_size:
                raise ValueError("its table t2d has not as many tokens as its config says")
        if target is None:
            return
        if own.draft_vocab_size and own.vocab_size != target.vocab_size:
            raise UserError(
                f"This diffusion drafter knows {own.vocab_size} tokens, and {target.name} has "
                f"{target.vocab_size} of them."
            )
        if own.hidden_size != target.hidden_size or max(own.target_layer_ids) >= target.layers:
            raise UserError(
                f"This diffusion drafter was trained on another target than {target.name}: "
                "its aux layer ids or hidden size do not fit."
            )
        if not 0 <= own.mask_token_id < target.embeddings:
            raise UserError(
                f"This diffusion drafter masks with the token {own.mask_token_id}, which "
                f"{target.name} does not have."
            )

    @classmethod
    def _refusal(cls, folder, target):
        return f"There is no {cls.noun} to open at {folder}"

    def fields(self):
        head = {"architectures": ["DFlashDraftModel"], "model_type": "dflash", "dtype": "float32"}
        own = asdict(self.config)
        special = {
            "target_layer_ids": list(own.pop("target_layer_ids")),
            "mask_token_id": own.pop("mask_token_id"),
        }
        return {**head, **own, "dflash_config": special}

    @classmethod
    def tiny(cls, target, opener=None):
        config = DFlashConfig(
            vocab_size=target.vocab_size,
            hidden_size=target.hidden_size,
            intermediate_size=24,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=8,
            block_size=4,
            target_layer_ids=(0, target.layers - 1),
            mask_token_id=0,
            num_target_layers=target.layers,
        )
        return cls(config).eval().requires_grad_(False)

    @property
    def tokens(self) -> Tensor | None:
        """The tokens for which a trimmed head has rows, int64 [K] in ascending order; None if the head has all tokens
        of the target."""
        return self.t2d.nonzero()[:, 0] if self.config.draft_vocab_size else None

    def head_beside(self, target: LanguageModel) -> Head:
        """Return the head for this target: a function from hidden states [.., H] after the final norm to logits [..,
        V], where V is the size of the target's vocabulary."""
        if not self.config.draft_vocab_size:
            return target.head
        if target not in self._heads:
            cut = trimmed_head(target.model, self.tokens)
            if self.own_head:
                cut = TrimmedHead(self.lm_head.weight, self.tokens, self.config.vocab_size)
            self._heads[target] = cut if self.make_head is None else self.make_head(cut)
        return self._heads[target]

    def turn(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Return the rotary cos and sin at these positions of the text, both of shape positions.shape + [D]."""
        return rotary(
            positions, self.config.head_dim, self.config.rope_theta, self.norm.weight.dtype
        )

    def project(self, features: Tensor) -> Tensor:
        """Project the target's hidden states of the n feature layers, concatenated, [..., T, n*H] -> context rows [...,
        T, H]."""
        return self.hidden_norm(self.fc(features))

    def context_kv(self, projected: Tensor, positions: Tensor) -> list[KeyValue]:
        """Return the keys and values for context rows [T, H] at positions [T], as they enter the KV cache: for each
        layer a pair of tensors [Hkv, T, D]."""
        cos, sin = self.turn(positions)
        return [layer.self_attn.keys_values(projected, cos, sin) for layer in self.layers]

    def forward_block(
        self, block_embeddings: Tensor, positions: Tensor, context: list[KeyValue]
    ) -> Tensor:
        """Run a block over the cached context: embeddings [B, H] at positions [B] -> hidden states [B, H] after the
        final norm. context: the cached keys and values of each layer."""
        cos, sin = self.turn(positions)
        rows = block_embeddings
        for layer, keys_values in zip(self.layers, context, strict=True):
            rows = layer(rows, cos, sin, keys_values)
        return self.norm(rows)

    def forward(self, features: Tensor, block_embeddings: Tensor, anchors: Tensor) -> Tensor:
        """Run many blocks of many sequences at once, for training. The result for each block is the same as that of
        ``forward_block``.

        features: [S, T, n*H]. block_embeddings: [S, A, B, H]. anchors: int [S, A], the position of each block's root in
        its sequence. The rows of a block attend to the features before the block's root and to each other. Returns the
        hidden states [S, A, B, H] after the final norm.
        """
        sequences, blocks, width, _ = block_embeddings.shape
        projected = self.project(features)
        length = projected.shape[1]
        places = torch.arange(length, device=anchors.device).expand(sequences, -1)
        context = self.context_kv(projected, places)
        own = torch.arange(blocks, device=anchors.device).repeat_interleave(width)
        before = places[:, None, :] < anchors[:, own, None]  # [S, A*B, T]
        same = (own[:, None] == own[None, :]).expand(sequences, -1, -1)  # [S, A*B, A*B]
        mask = torch.cat([before, same], dim=-1)[:, None]
        positions = (anchors[..., None] + torch.arange(width, device=anchors.device)).flatten(1)
        cos, sin = self.turn(positions)
        rows = block_embeddings.flatten(1, 2)
        for layer, keys_values in zip(self.layers, context, strict=True):
            rows = layer(rows, cos, sin, keys_values, mask)
        return self.norm(rows).unflatten(1, (blocks, width))
