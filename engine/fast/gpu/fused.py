"""Weights of several linear layers as one, without a second copy."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn


def fuse(modules: Sequence[nn.Linear]) -> tuple[Tensor, Tensor | None]:
    """One weight [sum of outputs, inputs] and bias [sum of outputs] (None if there is none).

    The modules' own parameters become views of these, so the modules work as before and nothing
    lies in memory twice. A single module keeps its own parameters.
    """
    if len(modules) == 1:
        (module,) = modules
        return module.weight.data, None if module.bias is None else module.bias.data
    weight = _joined([module.weight for module in modules])
    if modules[0].bias is None:
        return weight, None
    return weight, _joined([module.bias for module in modules])


def _joined(parameters: list[nn.Parameter]) -> Tensor:
    joined = torch.cat([parameter.data for parameter in parameters])
    start = 0
    for parameter in parameters:
        end = start + len(parameter)
        parameter.data = joined[start:end]
        start = end
    return joined
