"""Which experts the rows of a pass need together, and what such a pass takes."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from statistics import median

import torch
from torch import Tensor, nn

from engine.model.experts import ExpertsForCausalLM, outputs_of
from engine.model.language_model import LanguageModel


def used(model: LanguageModel, text: Sequence[int]) -> Tensor:
    """Whether each token of a text uses each expert of each layer: bool [L, T, E]. model: one with experts."""
    with outputs_of(model.model.gates) as weights:
        model.session(len(text)).feed(text, range(-1, len(text) - 1))
    return torch.cat(weights) != 0


def idle(using: Tensor, rows: int) -> float:
    """The share of experts that none of so many neighbouring tokens uses, over all layers and places of the text. In the
    paper it is TLS for one token, CLS for several. using: as ``used`` returns it; at least ``rows`` tokens."""
    return 1 - using.unfold(1, rows, 1).any(-1).float().mean().item()


def widened(module: ExpertsForCausalLM, times: int) -> ExpertsForCausalLM:
    """The same function with experts so many times as wide: each unit stands in the expert that often, and each of its
    copies adds its part of the sum. A pass chooses the same experts and gives the same logits up to rounding, but reads
    and computes as much as that of a larger model."""
    wide = copy.deepcopy(module)
    for layer in wide.model.layers:
        experts = layer.mlp
        experts.up, experts.down = (
            nn.Parameter(each.repeat_interleave(times, 0), requires_grad=False)
            for each in (experts.up, experts.down / times)
        )
        experts.size *= times
    return wide


def milliseconds(
    model: LanguageModel, texts: Sequence[Sequence[int]], rows: Sequence[int], rounds: int = 3
) -> list[float]:
    """What a pass takes, by its number of rows: the median over places of the texts. The numbers of rows take turns at each
    place, so that a machine that is busy for a while slows all of them."""
    most, took = max(rows), {count: [] for count in rows}
    for text in texts:
        session = model.session(len(text))
        for start in range(0, len(text) - most, most):
            for _ in range(rounds):
                for count in rows:
                    began = time.perf_counter()
                    session.feed(text[start : start + count], range(-1, count - 1))
                    took[count].append(1000 * (time.perf_counter() - began))
                    session.drop()
            session.prefill(text[start : start + most])
    return [median(took[count]) for count in rows]
