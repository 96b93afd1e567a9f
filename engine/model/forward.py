"""A pass through the transformers module, with the engine's mask and cache."""

from collections.abc import Callable

import torch
from torch import Tensor, nn


def forward(
    module: nn.Module,
    tokens: Tensor,
    positions: Tensor,
    mask,
    cache,
    features: tuple[int, ...],
    last: int | None = None,
    watch: Callable[[int, Tensor, Tensor], None] | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Run R rows of B sequences through the module; returns logits [B, last, V], and features [B, R, n*H] or None.

    tokens: ids [B, R], or vectors [B, R, H] in place of their embeddings. positions: the rows' positions in the text,
    [B, R]. features: the indices of n hidden states, which are returned side by side. mask: a RowMask, or another
    object that ``engine.model.attention`` can use. last: how many of the last rows get logits (at least one does); None
    means all. watch: as for ``engine.model.attention.tree_attention``.
    """
    # transformers passes a 4-D mask through unchanged; the real mask is row_mask
    empty = torch.ones(1, 1, 1, 1, dtype=torch.bool, device=tokens.device)
    arguments = {"attention_mask": empty, "row_mask": mask}
    if watch is not None:
        arguments["watch"] = watch
    return _called(module, tokens, positions, cache, features, last, arguments)


def forward_with_mask(
    module: nn.Module,
    tokens: Tensor,
    positions: Tensor,
    added: Tensor | None,
    cache,
    features: tuple[int, ...],
    last: int | None,
) -> tuple[Tensor, Tensor | None]:
    """Run rows through a module that has attention code of its own; arguments and results are those of ``forward``,
    except for the mask. added: the numbers [1, 1, R, T] that are added to the scores; if it is None, the module masks
    by itself. A module that ignores ``last`` returns the logits of all rows."""
    arguments = {"attention_mask": added}
    return _called(module, tokens, positions, cache, features, last, arguments)


def _called(
    module: nn.Module,
    tokens: Tensor,
    positions: Tensor,
    cache,
    features: tuple[int, ...],
    last: int | None,
    given: dict,
) -> tuple[Tensor, Tensor | None]:
    rows = {"inputs_embeds" if tokens.is_floating_point() else "input_ids": tokens}
    output = module(
        **rows,
        **given,
        position_ids=positions,
        past_key_values=cache,
        use_cache=True,
        output_hidden_states=bool(features),
        logits_to_keep=0 if last is None else max(last, 1),  # 0 means all in transformers
    )
    if not features:
        return output.logits, None
    return output.logits, torch.cat([output.hidden_states[i] for i in features], -1)
