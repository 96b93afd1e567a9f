"""The EAGLE cell: from the target's feature at a position and the token after it, it predicts the next feature.

The published methods differ in what the cell takes as input. EAGLE (Li et al., "EAGLE: Speculative Sampling Requires
Rethinking Feature Uncertainty", 2024) and EAGLE-2 (2024) take the hidden state from which the target's head computes
logits. EAGLE-3 ("EAGLE-3: Scaling up Inference Acceleration of Large Language Models via Training-Time Test", 2025)
fuses the states of three layers of the target into one; for drafted tokens the cell takes its own output states
instead. P-EAGLE ("P-EAGLE: Parallel-Drafting EAGLE with Scalable Training", 2026) takes a learned feature and a mask
token for each token that is not written yet, and so drafts all tokens in one pass. A multi-token-prediction layer
(DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024) is the cell of EAGLE-1 with additional norms: on each half of a
pair, before its first layer and at its end. The class ``EagleCell`` serves all of them; the names of tensors are those
of vLLM's ``speculators`` for EAGLE-3.

Row i of a text is a pair: the feature of token i, and the embedding of token i + 1. The output of the cell for this row
is the *state*, an estimate of feature i + 1. A head turns the state into the distribution of token i + 2, and the state
is the first half of the next pair.

Letters in shapes: H hidden size of the cell, Ht hidden size of the target, n target layers that give features, R rows,
D head size, Hq query heads, Hkv key/value heads, V the target's vocabulary, v the cell's own vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.methods.shared.attention_layer import Attention, GatedMLP
from engine.methods.shared.eagle_config import FUSED_LAYERS, EagleConfig
from engine.methods.shared.trimmed_head import rows_of
from engine.model.layers import shallow

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""Attention as a function: (index of the layer, queries [.., Hq, R, D], keys and values [.., Hkv, R, D] of the same
rows) -> [.., Hq, R, D]. The function decides by itself which cached rows these rows also attend to."""


@dataclass(frozen=True)
class Pieces:
    """Which of the optional tensors and tables a checkpoint has."""

    fc_bias: bool = False
    attention_bias: bool = False
    output_bias: bool = False
    head_norms: bool = False
    input_norm: bool = False
    fc_norm: bool = False
    norm: bool = False
    own_head: bool = False
    own_embeddings: bool = False
    own_vocabulary: bool = False
    readout: bool = False
    masks: bool = False


class EagleLayer(nn.Module):
    """A Llama layer of the cell, where the first layer depends on the layout. In EAGLE-1 the first layer has no input
    norm. In EAGLE-3 the attention of the first layer takes the embedding and the state, concatenated, each after a norm
    of its own. In a multi-token-prediction layer (MTP) the first layer is a plain Llama layer."""

    def __init__(self, config: EagleConfig, pieces: Pieces, index: int) -> None:
        super().__init__()
        first = index == 0
        self.fused, self.bare = first and config.fused, first and config.layout == "eagle"
        self.norm_before_residual = config.norm_before_residual
        width = config.hidden_size * (2 if self.fused else 1)
        self.self_attn = Attention(
            width,
            config.num_attention_heads,
            config.num_key_value_heads,
            config.head_dim,
            into=config.hidden_size,
            bias=pieces.attention_bias,
            output_bias=pieces.output_bias,
            norm_eps=config.rms_norm_eps if pieces.head_norms else None,
        )
        self.mlp = GatedMLP(config.hidden_size, config.intermediate_size, config.hidden_act)
        if not self.bare:
            self.input_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        if self.fused:
            self.hidden_norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.post_attention_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)

    def forward(self, rows: Tensor, embedded: Tensor, turn, attend) -> Tensor:
        """Run the layer: states and embeddings of the same rows, both [.., R, H] -> states [.., R, H]."""
        if self.fused:
            normed = self.hidden_norm(rows)
            attended = torch.cat([self.input_layernorm(embedded), normed], -1)
            rows = normed if self.norm_before_residual else rows
        else:
            attended = rows if self.bare else self.input_layernorm(rows)
        rows = rows + self.self_attn(attended, turn, attend)
        return rows + self.mlp(self.post_attention_layernorm(rows))


class FeatureSampler(nn.Module):
    """Adds a gated projection to each feature. The gate is the embedding of the token that follows the feature.

    FSPAD (Gui et al., "Boosting Lossless Speculative Decoding via Feature Sampling and Partial Alignment Distillation",
    2024). The feature alone determines only the distribution of this token; the embedding adds which token was drawn.
    The projection has the inner size ``wide``.
    """

    def __init__(self, width: int, wide: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(width, wide, bias=False)
        self.up_proj = nn.Linear(width, wide, bias=False)
        self.down_proj = nn.Linear(wide, width, bias=False)

    def forward(self, features: Tensor, embedded: Tensor) -> Tensor:
        """Change the features, given the embeddings of the tokens that follow them: both [.., R, H] -> features [.., R,
        H]."""
        return features + self.down_proj(F.silu(self.gate_proj(embedded)) * self.up_proj(features))


class EagleCell(nn.Module):
    """The weights of an EAGLE cell; the keys and values of a text are in its ``EagleContext``.

    A cell without embeddings or without a head uses those of the target. A cell with a smaller vocabulary and without a
    head uses the rows of the target's head for its own tokens (see ``beside``).
    """

    make_context = None
    """A function that makes the context of a text (``engine.methods.shared.eagle_context``). It is set when the cell is
    opened; None: contexts run the plain module."""

    def __init__(self, config: EagleConfig, pieces: Pieces | None = None) -> None:
        super().__init__()
        pieces = pieces or Pieces(norm=config.layout != "eagle", own_head=config.fused)
        self.config, self.pieces = config, pieces
        hidden, eps = config.hidden_size, config.rms_norm_eps
        self.embed_tokens = (
            nn.Embedding(config.vocab_size, hidden) if pieces.own_embeddings else None
        )
        fused = FUSED_LAYERS * config.target_hidden_size
        pair = (hidden, hidden) if config.layout == "mtp" else ()
        self.pair_norms = nn.ModuleList(nn.RMSNorm(width, eps=eps) for width in pair)
        widths = [config.target_hidden_size] * (FUSED_LAYERS * pieces.fc_norm)
        self.fc_norm = nn.ModuleList(nn.RMSNorm(width, eps=eps) for width in widths)
        self.input_norm = nn.RMSNorm(fused, eps=eps) if pieces.input_norm else None
        self.fc = nn.Linear(fused if config.fused else 2 * hidden, hidden, bias=pieces.fc_bias)
        unseen = fused if config.fused else config.target_hidden_size
        self.mask_hidden = nn.Parameter(torch.zeros(1, 1, unseen)) if pieces.masks else None
        self.norm = nn.RMSNorm(hidden, eps=eps) if pieces.norm else None
        wide = config.sampling_size
        self.feature_sampler = FeatureSampler(hidden, wide) if wide else None
        self.readout = nn.Linear(hidden, hidden, bias=False) if pieces.readout else None
        size = config.draft_vocab_size
        self.lm_head = nn.Linear(hidden, size, bias=False) if pieces.own_head else None
        self.layers = nn.ModuleList(
            EagleLayer(config, pieces, index) for index in range(config.num_hidden_layers)
        )
        if pieces.own_vocabulary:
            self.register_buffer("d2t", torch.zeros(size, dtype=torch.long))
            self.register_buffer("t2d", torch.zeros(config.vocab_size, dtype=torch.bool))
        frequencies, self._factor = config.inverse_frequencies()
        self.register_buffer("_frequencies", torch.tensor(frequencies), persistent=False)

    @property
    def target_tokens(self) -> Tensor | None:
        """For each token of the cell's own vocabulary, the target's token, int64 [v]; None if the cell uses the
        target's vocabulary."""
        if not self.pieces.own_vocabulary:
            return None
        return self.d2t + torch.arange(len(self.d2t), device=self.d2t.device)

    def turn(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Return the rotary cos and sin at these positions, both of shape places.shape + [D]. As in Llama, dimension i
        of a head is rotated together with dimension i + D/2."""
        angles = places[..., None].float() * self._frequencies.float()
        angles = torch.cat([angles, angles], -1)
        dtype = self.fc.weight.dtype
        return (angles.cos() * self._factor).to(dtype), (angles.sin() * self._factor).to(dtype)

    def fuse(self, features: Tensor) -> Tensor:
        """Turn the target's features [.., n*Ht] into states [.., H] of the same form as the states that the cell
        predicts."""
        if not self.config.fused:
            return features
        if self.fc_norm:
            layers = features.chunk(len(self.fc_norm), -1)
            features = torch.cat(
                [norm(layer) for norm, layer in zip(self.fc_norm, layers, strict=True)], -1
            )
        return self.fc(features if self.input_norm is None else self.input_norm(features))

    def mask_state(self) -> Tensor:
        """Return the learned state [1, H] that stands for the feature of a token over which the target was not run yet
        (P-EAGLE)."""
        return self.fuse(self.mask_hidden[0])

    def forward(
        self, states: Tensor, embedded: Tensor, turn: tuple[Tensor, Tensor], attend: Attend
    ) -> Tensor:
        """Predict the next states. states: [.., R, H]. embedded: [.., R, H], for each state the embedding of the token
        that follows it. Returns [.., R, H], the predicted state of each of these tokens."""
        if self.feature_sampler is not None:
            states = self.feature_sampler(states, embedded)
        pair = [embedded, states]
        if self.pair_norms:
            pair = [norm(half) for norm, half in zip(self.pair_norms, pair, strict=True)]
        rows = states if self.config.fused else self.fc(torch.cat(pair, -1))
        for index, layer in enumerate(self.layers):
            rows = layer(rows, embedded, turn, partial(attend, index))
        return self.norm(rows) if self.config.norm_output else rows

    def beside(self, target: nn.Module) -> EagleCell:
        """Return a cell that has a head for its own vocabulary. If this cell has its own vocabulary but no head, the
        result is a shallow copy with the rows of the target's head, which shares all other tensors. Otherwise the
        result is this cell. target: a transformers module."""
        if self.lm_head is not None or not self.pieces.own_vocabulary:
            return self
        rows = rows_of(target, self.target_tokens).to(self.fc.weight)
        head = nn.Linear(rows.shape[1], rows.shape[0], bias=False, device="meta")
        head.weight = nn.Parameter(rows, requires_grad=False)
        cell = shallow(self)
        cell.lm_head = head
        return cell

    def embed(self, tokens: Tensor, borrowed: Callable[[Tensor], Tensor]) -> Tensor:
        """The embeddings [R, H] of tokens [R]. borrowed: the target's embeddings, used if the cell has none."""
        return borrowed(tokens) if self.embed_tokens is None else self.embed_tokens(tokens)

    def logits(self, states: Tensor, borrowed: Callable[[Tensor], Tensor]) -> Tensor:
        """Turn states [.., H] into logits [.., v] over the cell's own vocabulary, or over the target's if the cell has
        none of its own. borrowed: the target's head, used if the cell has no head.

        In a cell with a readout (FSPAD's partial alignment), the input of the head is the state plus a projection of
        the state. So the state itself can stay close to the target's feature.
        """
        if self.readout is not None:
            states = states + self.readout(states)
        normed = states if self.norm is None or self.config.norm_output else self.norm(states)
        return borrowed(normed) if self.lm_head is None else self.lm_head(normed)

    def named(self, drafted: Tensor) -> Tensor:
        """Translate tokens of the cell's own vocabulary into the target's tokens."""
        tokens = self.target_tokens
        return drafted if tokens is None else tokens[drafted]

    def spread(self, logits: Tensor, size: int) -> Tensor:
        """Logits [.., v] over the cell's own vocabulary -> logits [.., size] over the target's, with -inf for tokens
        that the cell's vocabulary lacks."""
        tokens = self.target_tokens
        if tokens is None and logits.shape[-1] == size:
            return logits
        if tokens is None:
            tokens, logits = torch.arange(size, device=logits.device), logits[..., :size]
            tokens = tokens[: logits.shape[-1]]
        wide = logits.new_full((*logits.shape[:-1], size), float("-inf"))
        return wide.index_copy(-1, tokens, logits)
