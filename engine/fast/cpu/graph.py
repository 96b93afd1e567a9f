"""A full pass of a transformers module as one function of tensors, without a state of its own.

The keys and values of a session go in as arguments, and those of its new rows come out, so one compiled
graph serves every session, any tree, and any number of rows and columns. The module's code is traced as
it is: only its attention function, its cache and its mask are replaced.

Letters in shapes: R rows, C columns of the buffers, W hidden size, D head size, V vocabulary, N layers.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.cache_utils import Cache, CacheLayerMixin

NAME = "draftscope_graph"


class PassGraph(nn.Module):
    """layers: how many the module has. windows: their sliding windows, with None for a layer without one.
    features: indices into hidden_states to return; each costs about a hundredth of a pass."""

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
        """vectors [R, W], the rows' embeddings; positions [R]; looked: the rows that get logits.

        given: for each window the bias added to the scores, [R, C + R]; then k and v of each layer,
        [1, Hkv, C, D], unless nothing was read before and C is 0. Returns logits [looked, V], the rows' own
        k and v [2 N, Hkv, R, D], and the features, each [R, W].
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
        fresh = torch.cat([each for layer in cache.layers for each in layer.fresh])
        features = [output.hidden_states[index][0] for index in self._features]
        return output.logits[0], fresh, *features


class PassedColumns(CacheLayerMixin):
    """One layer's columns in a pass: those from before the pass, if there are any, and those that the pass makes."""

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
    """query [1,H,R,D], key and value [1,Hkv,C+R,D] -> ([1,R,H,D], None)."""
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
    """query [1,H,R,D], key and value [1,Hkv,C+R,D], bias [R,C+R] of 0 and minus infinity, sinks [1,Hkv,H/Hkv*R,1] ->
    [1,H,R,D]. scale: None is D ** -0.5.

    The rows of q heads that share a k head are read as one head.
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
    """Attention of rows to earlier columns and to themselves. before: k and v [1,Hkv,C,D] of the columns; keys,
    values: [1,Hkv,R,D], of the rows themselves."""
    keys, values = (torch.cat(pair, 2) for pair in zip(before, (keys, values), strict=True))
    return attended(queries, keys, values, bias)


AttentionInterface.register(NAME, attention)
