"""Which experts the rows of a pass need together, and what such a pass takes."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from engine.model.experts import ExpertsForCausalLM, outputs_of
from engine.model.language_model import LanguageModel
from engine.model.session import Session

ROUNDS = 3


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
    """A model of the same function whose experts are ``times`` as wide: each unit stands in the expert that often,
    and each of its copies adds its part of the sum. A pass chooses the same experts and gives the same logits up to
    rounding, but reads and computes as much as that of a larger model."""
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
    model: LanguageModel, texts: Sequence[Sequence[int]], rows: Sequence[int]
) -> list[float]:
    """Milliseconds of a pass by its number of rows: the mean over places of the texts, at each place the shortest of
    ``ROUNDS`` passes. The numbers of rows take turns, so that a machine that is busy for a while slows all of them."""
    most, took = max(rows), []
    for text in texts:
        session = model.session(len(text))
        for start in range(0, len(text) - most, 2 * most):
            session.prefill(text[session.length : start])
            rounds = [
                [_timed(session, text[start : start + n]) for n in rows] for _ in range(ROUNDS)
            ]
            took.append([min(each) for each in zip(*rounds, strict=True)])
    return [sum(each) / len(each) for each in zip(*took, strict=True)]


def _timed(session: Session, tokens: Sequence[int]) -> float:
    began = time.perf_counter()
    session.feed(tokens, range(-1, len(tokens) - 1))
    took = time.perf_counter() - began
    session.drop()
    return 1000 * took
