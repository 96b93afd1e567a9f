"""A separate diffusion language model: from the text alone, without the target's states, it fills masked blocks after
the text.

It is the drafter of DEER (Cheng et al., "DEER: Draft with Diffusion, Verify with Autoregressive Models", 2025). The
model runs over the text causally, once for each token, and caches the keys and values. The block after the text is a
separator and B masks, which attend to the whole text and the whole block; all masks are filled in one pass. The model
has its own embedding matrix, which is also its head. The matrix has a row for each of the target's tokens, then one for
the mask and one for the separator. The layers are built like those of the DFlash drafter.

Letters in shapes: H hidden size, S texts, T tokens of a text, A blocks, B masks of a block, V the target's vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn

from engine.core.transfer import to_device
from engine.errors import UserError
from engine.methods.shared.attention_layer import KeyValue, rotary
from engine.methods.shared.dflash_model import MOST_LAYERS, DFlashLayer
from engine.methods.shared.module_columns import ModuleColumns
from engine.parts.module_part import ModulePart, sizes_of

CHUNK = 512  # tokens of a text that are read at a time; bounds the size of the mask


@dataclass
class DiffusionLMConfig:
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    block_size: int
    max_position_embeddings: int = 1024
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10000.0

    @property
    def mask(self) -> int:
        return self.vocab_size

    @property
    def separator(self) -> int:
        return self.vocab_size + 1

    @classmethod
    def of(cls, raw: Mapping) -> DiffusionLMConfig:
        """Return the sizes given by a config.json. Raises ValueError for impossible sizes; its message is the end of a
        sentence that the caller begins."""
        config = sizes_of(cls, raw)
        if config.num_hidden_layers > MOST_LAYERS:
            raise ValueError(f"{config.num_hidden_layers} layers are too many")
        if config.num_attention_heads % config.num_key_value_heads or config.head_dim % 2:
            raise ValueError("its heads do not fit together")
        return config


class DiffusionLM(ModulePart):
    key, noun, reads_states = "diffusion_lm", "diffusion language model", False

    def __init__(self, config: DiffusionLMConfig) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size + 2, config.hidden_size)
        self.layers = nn.ModuleList(DFlashLayer(config) for _ in range(config.num_hidden_layers))
        self.norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)

    @classmethod
    def of_files(cls, config, tensors, target):
        return cls(DiffusionLMConfig.of(config))

    def settle(self, config, target, folder):
        tokens = self.config.vocab_size
        if tokens != target.vocab_size:
            raise UserError(
                f"The {self.noun} in {folder} has {tokens:,} tokens, {target.name} {target.vocab_size:,}."
            )

    def fields(self):
        head = {"architectures": ["DiffusionLM"], "model_type": "draftscope_diffusion_lm"}
        return {**head, **asdict(self.config)}

    @classmethod
    def tiny(cls, target, opener=None):
        config = DiffusionLMConfig(target.vocab_size, 16, 24, 2, 2, 1, 8, block_size=4)
        return cls(config).eval().requires_grad_(False)

    def turn(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Return cos and sin of the rotary embedding at these positions of the text."""
        config = self.config
        return rotary(positions, config.head_dim, config.rope_theta, self.norm.weight.dtype)

    def head(self, hidden: Tensor) -> Tensor:
        """Map hidden states [..., H] to logits [..., V], which have no entries for mask and separator."""
        return self.norm(hidden) @ self.embed_tokens.weight[: self.config.vocab_size].T

    def block(self, count: int, device: torch.device) -> Tensor:
        """Return the tokens of an empty block, int64 [count + 1]: the separator and ``count`` masks."""
        tokens = torch.full((count + 1,), self.config.mask, device=device)
        tokens[0] = self.config.separator
        return tokens

    def forward(self, tokens: Tensor, anchors: Tensor, blocks: Tensor) -> Tensor:
        """Return the logits [S, A, B, V] for many blocks of many texts at once, for training. Each block gets the
        logits that ``ReadText.fill`` would give it.

        tokens: int64 [S, T]. anchors: int64 [S, A], the position of the last token before each block. blocks: int64 [S,
        A, B + 1], the tokens of the blocks, the separator first.
        """
        texts, length = tokens.shape
        count, width = blocks.shape[1:]
        places = torch.arange(length, device=tokens.device)
        behind = anchors[..., None] + 1 + torch.arange(width, device=tokens.device)
        positions = torch.cat([places.expand(texts, -1), behind.flatten(1)], 1)
        owner = torch.arange(count, device=tokens.device).repeat_interleave(width)
        causal = (places[:, None] >= places).expand(texts, -1, -1)
        blind = causal.new_zeros(texts, length, count * width)
        before = places <= anchors[:, owner, None]
        same = (owner[:, None] == owner).expand(texts, -1, -1)
        mask = torch.cat([torch.cat([causal, blind], -1), torch.cat([before, same], -1)], 1)
        rows = self.embed_tokens(torch.cat([tokens, blocks.flatten(1)], 1))
        cos, sin = self.turn(positions)
        nothing = self.nothing(texts)
        for layer in self.layers:
            rows = layer(rows, cos, sin, nothing, mask[:, None])
        return self.head(rows[:, length:].unflatten(1, (count, width))[:, :, 1:])

    def nothing(self, *batch: int) -> KeyValue:
        """Return the keys and values of an empty text."""
        config, weight = self.config, self.norm.weight
        empty = weight.new_empty(*batch, config.num_key_value_heads, 0, config.head_dim)
        return empty, empty


class ReadText:
    """The keys and values of one text in the diffusion model. length: the number of tokens so far."""

    def __init__(self, model: DiffusionLM) -> None:
        self._model = model
        self._columns = ModuleColumns.of(len(model.layers))
        self.length = 0

    @torch.no_grad()
    def read(self, tokens: Tensor) -> None:
        """Append tokens, int64 [n], to the text."""
        for part in tokens.split(CHUNK):
            self._pass(part, part.new_empty(0))

    @torch.no_grad()
    def fill(self, tokens: Tensor, count: int) -> Tensor:
        """Append a few tokens, int64 [n], and fill ``count`` masks after them in the same pass. Returns the logits
        [count, V] of the masks."""
        return self._model.head(self._pass(tokens, self._model.block(count, tokens.device))[1:])

    def _pass(self, tokens: Tensor, block: Tensor) -> Tensor:
        """Append the tokens, and return the hidden states of the block's rows after them. The keys and values of the
        block are not cached."""
        model, new = self._model, len(tokens)
        total = new + len(block)
        places = torch.arange(total, device=tokens.device)
        cos, sin = model.turn(self.length + places)
        own = (places[:, None] >= places) | (places[:, None] >= new)
        before = own.new_ones(total, self.length)
        mask = torch.cat([before, own], -1)[None, None]
        rows = model.embed_tokens(torch.cat([tokens, block]))
        fresh = []
        for place, layer in enumerate(model.layers):
            before_pair = self._columns.read(place) if self.length else model.nothing()
            normed = layer.input_layernorm(rows[:new])
            fresh.append(layer.self_attn.keys_values(normed, cos[:new], sin[:new]))
            rows = layer(rows, cos, sin, before_pair, mask)
        for place, pair in enumerate(fresh):
            self._columns.append(place, *pair)
        self.length += new
        return rows[new:]


def tensor_of(tokens, device) -> Tensor:
    """Return these tokens as an int64 tensor on the model's device."""
    return to_device(torch.tensor(list(tokens), dtype=torch.int64), device)


KIND = DiffusionLM.kind()
