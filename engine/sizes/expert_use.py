"""The experts that the rows of a pass use together, and the time of such a pass."""

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
    """bool [L, T, E]: whether, in each layer, each token of a text uses each expert. model: a mixture of experts."""
    with outputs_of(model.model.gates) as weights:
        model.session(len(text)).feed(text, range(-1, len(text) - 1))
    return torch.cat(weights) != 0


def idle(using: Tensor, rows: int) -> float:
    """The share of experts that none of ``rows`` neighbouring tokens uses, averaged over all layers and positions of
    the text. In the paper it is TLS for one token, CLS for several. using: the result of ``used`` for at least ``rows``
    tokens."""
    return 1 - using.unfold(1, rows, 1).any(-1).float().mean().item()


def widened(module: ExpertsForCausalLM, times: int) -> ExpertsForCausalLM:
    """A model of the same function whose experts are ``times`` as wide: each unit is repeated that often in its expert,
    and each copy contributes its part of the sum. A pass chooses the same experts and gives the same logits up to
    rounding, but reads and computes as much as a pass of a larger model."""
    wide = copy.deepcopy(module)
    for layer in wide.model.layers:
        experts = layer.mlp
        experts.up, experts.down = (
            nn.Parameter(weight.repeat_interleave(times, 0), requires_grad=False)
            for weight in (experts.up, experts.down / times)
        )
        experts.size *= times
    return wide


def milliseconds(
    model: LanguageModel, texts: Sequence[Sequence[int]], rows: Sequence[int]
) -> list[float]:
    """Milliseconds of a pass for each number of rows: the mean over positions of the texts, at each position the
    shortest of ``ROUNDS`` passes. The numbers of rows take turns, so that a machine that is busy for a while slows all
    of them."""
    most, took = max(rows), []
    for text in texts:
        session = model.session(len(text))
        for start in range(0, len(text) - most, 2 * most):
            session.prefill(text[session.length : start])
            rounds = [
                [_timed(session, text[start : start + n]) for n in rows] for _ in range(ROUNDS)
            ]
            took.append([min(times) for times in zip(*rounds, strict=True)])
    return [sum(times) / len(times) for times in zip(*took, strict=True)]


def _timed(session: Session, tokens: Sequence[int]) -> float:
    began = time.perf_counter()
    session.feed(tokens, range(-1, len(tokens) - 1))
    took = time.perf_counter() - began
    session.drop()
    return 1000 * took
