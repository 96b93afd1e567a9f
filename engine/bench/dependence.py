"""Estimates how much the tokens of an answer depend on each other, in the target's own distribution.

Kang et al., "ParallelBench: Understanding the Trade-offs of Parallel Decoding in Diffusion LLMs" (2025): let X be the
prompt and Y the answer. If L positions of Y are filled at once, each from its own marginal, the KL divergence from the
true distribution is at least the conditional total correlation C(Y | X) = sum of H(y_i | X) - H(Y | X). At 0 the
positions are independent given the prompt, as in a copy.

C is estimated from texts that the target draws. The marginal of position i is estimated as the mean over the texts of
p(y_i | X, y_before), and H(Y | X) as the mean of the entropies of these conditional distributions. So C / L is a mean
over positions of a generalised Jensen-Shannon divergence: that of the texts' conditional distributions at this
position. It is never negative, and at most the log of the number of texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import PreTrainedModel

from engine.core.sampling import pick, stream, uniforms


@dataclass(frozen=True)
class Dependence:
    """The dependence of an answer's tokens, in nats per position. correlation: C(Y | X) / L. entropy: H(Y | X) / L, the
    uncertainty that remains even if all earlier tokens are known."""

    correlation: float
    entropy: float


def dependence(
    module: PreTrainedModel,
    prompt: Sequence[int],
    places: int,
    texts: int,
    seed: int,
    ends: frozenset[int] = frozenset(),
) -> Dependence:
    """Estimate how much the ``places`` tokens after a prompt depend on each other, from ``texts`` texts that are drawn
    at temperature 1.

    module: the target. ends: tokens that end a text.
    """
    return of_laws(drawn_laws(module, prompt, places, texts, seed, ends))


def of_laws(laws: Tensor) -> Dependence:
    """The dependence, computed from the distributions from which the tokens of texts were drawn. laws: [texts, places,
    V]."""
    own = torch.special.entr(laws).sum(-1).mean(0)
    marginal = torch.special.entr(laws.mean(0)).sum(-1)
    return Dependence(max(0.0, float((marginal - own).mean())), float(own.mean()))


@torch.inference_mode()
def drawn_laws(
    module: PreTrainedModel,
    prompt: Sequence[int],
    places: int,
    texts: int,
    seed: int,
    ends: frozenset[int] = frozenset(),
) -> Tensor:
    """Draw texts. Returns the distribution from which each token of each text was drawn, [texts, places, V]. After the
    end of a text, only the end token can follow."""
    random, cache = stream(seed, "dependence"), None
    reading = torch.tensor([list(prompt)] * texts, device=module.device)
    ended, laws = torch.zeros(texts, dtype=torch.bool), []
    for _ in range(places):
        said = module(input_ids=reading, past_key_values=cache, use_cache=True)
        cache = said.past_key_values
        law = said.logits[:, -1].double().softmax(-1).cpu()
        if ended.any():
            law[ended] = 0.0
            law[ended, min(ends)] = 1.0
        laws.append(law)
        tokens = pick(law, uniforms(random, texts))
        ended |= torch.tensor([token in ends for token in tokens.tolist()])
        reading = tokens[:, None].to(module.device)
    return torch.stack(laws, 1)
