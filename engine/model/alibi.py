"""ALiBi for rows of a tree: a column's bias follows its place in the text, not its place in the cache.

Press et al., "Train Short, Test Long: Attention with Linear Biases Enables Input Length Extrapolation".
"""

from threading import local

import torch
from torch import Tensor, nn


def hand_over_columns(module: nn.Module, columns: local) -> None:
    """From now on, modules of the BLOOM and MPT kinds take the places of their columns from
    ``columns.positions`` [T]; while it is None, they count the columns as before."""
    for part in list(module.modules()):
        if hasattr(part, "build_alibi_tensor"):
            part.build_alibi_tensor = _Bloom(part.build_alibi_tensor, columns)
        elif hasattr(part, "build_mpt_alibi_tensor"):
            part.build_mpt_alibi_tensor = _Mpt(part.build_mpt_alibi_tensor, columns)


class _Bloom:
    """[B * H, 1, T]: slope times place."""

    def __init__(self, build, columns: local) -> None:
        self._build, self._columns = build, columns

    def __call__(self, attention_mask: Tensor, num_heads: int, dtype: torch.dtype) -> Tensor:
        places = getattr(self._columns, "positions", None)
        if places is None:
            return self._build(attention_mask, num_heads, dtype)
        text = torch.ones(1, int(places.max()) + 1, dtype=torch.long, device=places.device)
        return self._build(text, num_heads, dtype).index_select(-1, places)


class _Mpt:
    """[H, 1, T]: slope times the distance to the end of the longest text."""

    def __init__(self, build, columns: local) -> None:
        self._build, self._columns = build, columns

    def __call__(self, num_heads: int, sequence_length: int, *others, **named) -> Tensor:
        found = self._build(num_heads, sequence_length, *others, **named)
        places = getattr(self._columns, "positions", None)
        return found if places is None else found.index_select(-1, places)
