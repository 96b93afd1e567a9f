"""Measures for a mixture of experts which experts the rows of a pass use together, and how long a pass takes."""

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
    """Which experts each token of a text uses in each layer, bool [L, T, E] (L layers, T tokens, E experts). model: a
    mixture of experts."""
    with outputs_of(model.model.gates) as weights:
        model.session(len(text)).feed(text, range(-1, len(text) - 1))
    return torch.cat(weights) != 0


def idle(using: Tensor, rows: int) -> float:
    """The share of experts that none of ``rows`` neighbouring tokens uses, averaged over all layers and all positions
    of the text. The BlockFFN paper calls it TLS for one token, and CLS for a chunk of several. using: the result of
    ``used`` for a text of at least ``rows`` tokens."""
    return 1 - using.unfold(1, rows, 1).any(-1).float().mean().item()


def widened(module: ExpertsForCausalLM, times: int) -> ExpertsForCausalLM:
    """A copy of a model whose experts are ``times`` as wide, and which computes the same function. Each unit of an
    expert is repeated ``times`` times, and each copy contributes 1/``times`` of the unit's output. A pass chooses the
    same experts and gives the same logits up to rounding, but moves and computes as much as a pass of a larger
    model."""
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
    """The milliseconds of a pass, for each number of rows in ``rows``. Passes start at positions spread over the
    texts. At each position the shortest of ``ROUNDS`` passes counts, and the result is the mean over the positions.
    The numbers of rows take turns, so that a busy moment of the machine slows all of them."""
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
