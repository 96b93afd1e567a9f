"""A causal language model whose feed-forward layers are many small experts. A pass computes those experts that at least
one of its rows needs, and skips the others.

There are two ways to choose experts. In BlockFFN (Song et al. 2025, arXiv 2507.08771), a row uses every expert whose
score is above 0, and RMSNorm scales the scores. In a mixture of experts, a row uses the k experts with the highest
scores, weighted by their softmax. In all other respects the model is a Llama.

Letters in shapes: H hidden size, E experts of a layer, D units of an expert, U experts that some row needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from engine.core.exhibits import Gauge
from engine.core.seen import Draft, Seen
from engine.model.cache import KVCache
from engine.model.language_model import LanguageModel
from engine.model.session import Session


@strict
class ExpertsConfig(LlamaConfig):
    """The configuration of a model of experts. num_experts: experts per layer. expert_size: units per expert.
    num_experts_per_tok: experts that a row uses; 0 means all experts whose score is above 0."""

    model_type = "experts"
    num_experts: int = 48
    expert_size: int = 24
    num_experts_per_tok: int = 0


class Gate(nn.Module):
    """Computes the weight of each expert for each row. The weight is 0 if the row does not use the expert."""

    def __init__(self, config: ExpertsConfig) -> None:
        super().__init__()
        self.scores = nn.Linear(config.hidden_size, config.num_experts, bias=False)
        self.most = config.num_experts_per_tok
        if not self.most:
            self.norm = LlamaRMSNorm(config.num_experts, eps=config.rms_norm_eps)

    def forward(self, hidden: Tensor) -> Tensor:
        """Rows [..., H] -> the weights of the experts, [..., E]."""
        scores = self.scores(hidden)
        if not self.most:
            return self.norm(scores.relu())
        chosen = scores.topk(self.most, -1)
        weights = chosen.values.softmax(-1, torch.float32).to(scores.dtype)
        return torch.zeros_like(scores).scatter(-1, chosen.indices, weights)


class Experts(nn.Module):
    """The experts of one layer. An expert maps [H] to D units, and the units back to [H]. The D rows of an expert are
    consecutive in ``up`` and in ``down``."""

    def __init__(self, config: ExpertsConfig) -> None:
        super().__init__()
        self.gate = Gate(config)
        self.size = config.expert_size
        shape = (config.num_experts * config.expert_size, config.hidden_size)
        self.up, self.down = (
            nn.Parameter(torch.empty(shape).normal_(0, config.initializer_range)) for _ in range(2)
        )

    def forward(self, hidden: Tensor) -> Tensor:
        """The layer's output: rows [..., H] -> [..., H]. Only experts that some row needs are computed."""
        weights = self.gate(hidden)
        needed = (weights != 0).flatten(0, -2).any(0).nonzero()[:, 0]
        up, down = self.up, self.down
        if len(needed) < weights.shape[-1]:
            weights = weights[..., needed]
            up, down = (
                matrix.unflatten(0, (-1, self.size))[needed].flatten(0, 1) for matrix in (up, down)
            )
        units = F.silu(F.linear(hidden, up)).unflatten(-1, (len(needed), self.size))
        return (units * weights[..., None]).flatten(-2) @ down


class ExpertsForCausalLM(LlamaForCausalLM):
    config_class = ExpertsConfig

    def __init__(self, config: ExpertsConfig) -> None:
        super().__init__(config)
        for layer in self.model.layers:
            layer.mlp = Experts(config)
        self.post_init()

    @property
    def gates(self) -> list[Gate]:
        """The gate of each layer."""
        return [layer.mlp.gate for layer in self.model.layers]


AutoConfig.register(ExpertsConfig.model_type, ExpertsConfig)
AutoModelForCausalLM.register(ExpertsConfig, ExpertsForCausalLM)


@contextmanager
def outputs_of(parts: Iterable[nn.Module]) -> Iterator[list[Tensor]]:
    """A context whose value is a list of the outputs that these modules compute within it, in order."""
    outputs: list[Tensor] = []
    hooks = [
        part.register_forward_hook(lambda _, __, output: outputs.append(output)) for part in parts
    ]
    try:
        yield outputs
    finally:
        for hook in hooks:
            hook.remove()


class ExpertsModel(LanguageModel):
    """A model of experts as a target. It shows with every draft which share of the experts the pass over the draft left
    out."""

    holds_branches = False  # the exhibit of a pass is of one text

    def session(self, capacity: int, features: Sequence[int] = ()) -> ExpertsSession:
        return ExpertsSession(self, KVCache.empty(self.cache_layers, capacity), tuple(features))


class ExpertsSession(Session):
    def look(self, draft: Draft) -> Seen:
        with outputs_of(self.model.model.gates) as weights:
            result = super().look(draft)
        draft.tree.exhibits.append(_left_out(weights))
        return result


def _left_out(weights: Sequence[Tensor]) -> Gauge:
    """An exhibit that shows the share of experts that a pass left out. weights: for each layer, the weights [1, R, E]
    of its E experts for the R rows."""
    idle = [layer[0] == 0 for layer in weights]
    together, first = (
        sum(share.float().mean().item() for share in shares) / len(idle)
        for shares in ([layer.all(0) for layer in idle], [layer[0] for layer in idle])
    )
    return Gauge(
        "Experts that this pass left out",
        together,
        mark=first,
        note="The mark is what the pass would leave out if it read the first row alone.",
    )
