"""Writes a full pass of a transformers module as one stateless function of tensors.

A session's keys and values are arguments of the function, and the keys and values of the pass's own rows are among its
results. So one compiled graph serves every session, any tree, and any number of rows and columns. The module's code is
traced as it is: only its attention function, its cache and its mask are replaced.

Letters in shapes: R rows, C columns of the buffers, W hidden size, H heads, Hkv KV heads, D head size, V vocabulary, N
layers.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.cache_utils import Cache, CacheLayerMixin

NAME = "draftscope_graph"


class PassGraph(nn.Module):
    """The full pass of a module, for tracing. layers: the number of the module's layers. windows: the different sliding
    windows of the layers; None stands for full attention. features: indices into hidden_states to return; each index
    costs about a hundredth of a pass."""

    def __init__(
        self,
        module: nn.Module,
        layers: int,
        windows: Sequence[int | None],
        features: Sequence[int],
    ) -> None:
        super().__init__()
        self._module, self._layers = module, layers
        self._windows = list(windows)
        self._features = list(features)

    def forward(self, vectors: Tensor, positions: Tensor, looked: Tensor, *given: Tensor):
        """Run the pass. Returns logits [len(looked), V], the rows' own keys and values [2 N, Hkv, R, D], and the
        features, each [R, W].

        vectors: the rows' embeddings, [R, W]. positions: [R]. looked: indices of the rows that get logits. given: for
        each window the bias [R, C + R] that is added to the scores; then the keys and values of each layer, [1, Hkv, C,
        D]. If C is 0, the keys and values are left out.
        """
        masks = dict(zip(self._windows, given, strict=False))
        columns = given[len(masks) :]
        pairs = list(zip(columns[::2], columns[1::2], strict=True)) or [None] * self._layers
        cache = Cache(layers=[PassedColumns(pair) for pair in pairs])
        output = self._module(
            inputs_embeds=vectors[None],
            position_ids=positions[None],
            # transformers passes a 4-D mask through unchanged; the real ones are row_mask
            attention_mask=torch.ones(1, 1, 1, 1, dtype=torch.bool),
            past_key_values=cache,
            use_cache=True,
            output_hidden_states=bool(self._features),
            logits_to_keep=looked,
            row_mask=masks,
        )
        fresh = torch.cat([tensor for layer in cache.layers for tensor in layer.fresh])
        features = [output.hidden_states[index][0] for index in self._features]
        return output.logits[0], fresh, *features


class PassedColumns(CacheLayerMixin):
    """One layer's keys and values in a pass. before: those of earlier rows, or None. fresh: those of the rows of this
    pass."""

    is_sliding = False

    def __init__(self, before: tuple[Tensor, Tensor] | None) -> None:
        super().__init__()
        self._before = before
        self.is_initialized = True

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        pass

    def update(self, key_states: Tensor, value_states: Tensor, *args, **kwargs):
        self.fresh = key_states, value_states
        if self._before is None:
            return self.fresh
        joined = zip(self._before, self.fresh, strict=True)
        return tuple(torch.cat(pair, 2) for pair in joined)

    def get_seq_length(self) -> int:
        return 0 if self._before is None else self._before[0].shape[2]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.get_seq_length() + query_length, 0

    def get_max_length(self) -> int:
        return -1


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    row_mask: dict[int | None, Tensor] | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **_: object,
) -> tuple[Tensor, None]:
    """The attention function of a traced module: query [1,H,R,D], key and value [1,Hkv,C+R,D] -> ([1,R,H,D], None).
    row_mask: the bias [R,C+R] by sliding window. s_aux: the attention sink of each head, [H]."""
    sinks = None
    if s_aux is not None:
        sinks = s_aux.view(1, key.shape[1], -1, 1).expand(-1, -1, -1, query.shape[2])
        sinks = sinks.reshape(1, key.shape[1], -1, 1)
    out = attended(query, key, value, row_mask[sliding_window], scaling, softcap, sinks)
    return out.transpose(1, 2).contiguous(), None


def attended(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor,
    scale: float | None = None,
    softcap: float | None = None,
    sinks: Tensor | None = None,
) -> Tensor:
    """Attention of R rows to C + R columns; returns [1,H,R,D].

    query: [1,H,R,D]. key, value: [1,Hkv,C+R,D]. bias: [R,C+R], 0 or minus infinity. scale: None means D ** -0.5.
    softcap: bounds the scores by tanh; None means no bound. sinks: [1,Hkv,H/Hkv*R,1]. Query heads that share a key head
    are computed as one head with more rows.
    """
    heads, kv_heads, size = query.shape[1], key.shape[1], value.shape[-1]
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    rows = query.reshape(1, kv_heads, -1, query.shape[-1])
    added = bias.repeat(heads // kv_heads, 1)[None, None]
    scores = rows @ key.transpose(-1, -2)
    if softcap is None:
        # OpenVINO would recognize attention that scales first, and would then scale all keys
        scores = (scores + added) * scale
    else:
        scores = torch.tanh(scores * (scale / softcap)) * softcap + added
    if sinks is None:
        out = scores.softmax(-1) @ value
    else:
        out = torch.cat([scores, sinks], -1).softmax(-1)[..., :-1] @ value
    return out.reshape(1, heads, -1, size)


def attended_after(
    before: Sequence[Tensor], queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor
) -> Tensor:
    """Attention of R rows to C earlier columns and to each other; returns [1,H,R,D]. before: keys and values of the
    columns, each [1,Hkv,C,D]. keys, values: [1,Hkv,R,D], of the rows. bias: [R,C+R], added to the scores."""
    keys, values = (torch.cat(pair, 2) for pair in zip(before, (keys, values), strict=True))
    return attended(queries, keys, values, bias)


AttentionInterface.register(NAME, attention)
