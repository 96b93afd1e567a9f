"""Language models whose head keeps only some rows. A pass reads fewer bytes, and tokens without a row never occur."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from engine.errors import UserError
from engine.model.language_model import LanguageModel
from engine.model.layers import shallow

_CUTS: WeakKeyDictionary[LanguageModel, dict[tuple[int, ...], LanguageModel]] = WeakKeyDictionary()
_MOST_CUTS = 4  # per model; the oldest is dropped first


def with_head(model: LanguageModel, tokens: Tensor) -> LanguageModel:
    """A view of the model whose head has only the rows of ``tokens`` [K]: its logits have K columns, in this order.

    All parts below the head are shared. Raises UserError if the head is no linear layer of the model's own.
    """
    cuts = _CUTS.setdefault(model, {})
    key = tuple(tokens.tolist())
    if key not in cuts:
        while len(cuts) >= _MOST_CUTS:
            del cuts[next(iter(cuts))]
        cuts[key] = model.reopened(_cut(model.model, tokens, model.name))
    return cuts[key]


@torch.no_grad()
def _cut(module: PreTrainedModel, tokens: Tensor, name: str) -> PreTrainedModel:
    head = module.get_output_embeddings()
    place = next((own for own, part in module._modules.items() if part is head), None)
    if place is None or not isinstance(head, nn.Linear):
        raise UserError(f"{name} has no head of its own that could be cut.")
    tokens = tokens.to(head.weight.device)
    cut_head = nn.Linear(head.in_features, len(tokens), bias=head.bias is not None, device="meta")
    cut_head.weight = nn.Parameter(head.weight[tokens].clone(), requires_grad=False)
    if head.bias is not None:
        cut_head.bias = nn.Parameter(head.bias[tokens].clone(), requires_grad=False)
    view = shallow(module)
    view._modules[place] = cut_head
    return view


def head_bytes(model: LanguageModel) -> int:
    """The size of the head's weights in bytes."""
    weight = model.model.get_output_embeddings().weight
    return weight.numel() * weight.element_size()
