"""DSpark's two heads on the last states of a block drafter: the Markov head and the confidence head.

DSpark (DeepSeek, 2026). The Markov head adds W2 W1[token before] to the logits of a place: a low-rank matrix over pairs
of tokens. The input of the confidence head is the state at a position and W1[token before]; it predicts how likely the
token drawn at this position is to be kept. Letters in shapes: V vocabulary, K tokens of the block drafter's head, R
rank, H hidden size. Published layout: ``markov_head.markov_w1.weight`` [V, R], ``markov_head.markov_w2.weight`` [K, R],
``confidence_head.proj.{weight,bias}`` [1, H + R], [1], in the same file as the tensors of the block drafter. Here a
folder may hold the heads alone, and its config the temperature of each place.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.errors import UserError
from engine.methods.shared.block_heads import DENOISER, BlockHeads, normal, shape_of

W1, W2 = "markov_head.markov_w1.weight", "markov_head.markov_w2.weight"
WEIGHT, BIAS = "confidence_head.proj.weight", "confidence_head.proj.bias"
TEMPERATURES = "confidence_temperatures"


class SparkHeads(BlockHeads):
    """The Markov head and the confidence head. temperatures: for each position of a block, the temperature that
    calibrates the confidence there; the last temperature also serves all further positions."""

    key, noun = "spark_heads", "set of DSpark heads"
    published = {
        W1: "embed_before.weight",
        W2: "embed_after.weight",
        WEIGHT: "confidence.weight",
        BIAS: "confidence.bias",
    }

    def __init__(self, hidden: int, tokens: int, drafted: int, rank: int, reads: int) -> None:
        """hidden: the size of a state. tokens: the size of the target's vocabulary. drafted: how many of these tokens
        can be drafted. reads: the size of the confidence head's input, or 0 to have no confidence head."""
        super().__init__()
        self.hidden = hidden
        self.embed_before = nn.Embedding(tokens, rank)
        self.embed_after = nn.Linear(rank, drafted, bias=False)
        self.confidence = nn.Linear(reads, 1) if reads else None
        self.temperatures: Sequence[float] = (1.0,)

    @classmethod
    def of_files(cls, config, tensors, target):
        if config.get("markov_head_type", "vanilla") != "vanilla":
            raise ValueError("markov_head_type: only vanilla Markov heads are read here")
        (tokens, rank), (drafted, _) = shape_of(tensors, W1), shape_of(tensors, W2)
        reads = shape_of(tensors, WEIGHT)[1] if WEIGHT in tensors else 0
        inner = config.get("transformer_layer_config") or config
        hidden = inner["hidden_size"]
        if reads not in (0, hidden, hidden + rank):
            raise ValueError(f"confidence_head: it reads {reads} numbers, and a state has {hidden}")
        return cls(hidden, tokens, drafted, rank, reads)

    def settle(self, config, target, folder):
        super().settle(config, target, folder)
        given = config.get(TEMPERATURES, [1.0])
        if not isinstance(given, list) or not given or not all(1e-3 < t < 1e3 for t in given):
            raise ValueError(f"its {TEMPERATURES} are not positive numbers")
        self.temperatures = [float(t) for t in given]

    def fields(self):
        return {
            "hidden_size": self.hidden,
            "markov_rank": self.rank,
            "markov_head_type": "vanilla",
            "enable_confidence_head": self.confidence is not None,
            "confidence_head_with_markov": self.with_markov,
            TEMPERATURES: [round(temperature, 4) for temperature in self.temperatures],
            DENOISER: self.denoiser_digest,
        }

    @classmethod
    def tiny(cls, target, opener=None):
        """Return heads for the tiny denoiser. They change its laws, and their confidence varies with the text."""
        hidden, tokens = target.hidden_size, target.vocab_size
        heads = normal(cls(hidden, tokens, tokens, 3, hidden + 3), 0.7)
        heads.confidence.weight.mul_(5)
        return heads

    @property
    def rank(self) -> int:
        return self.embed_before.embedding_dim

    @property
    def with_markov(self) -> bool:
        return self.confidence is not None and self.confidence.in_features > self.hidden

    def sizes(self):
        return self.hidden, self.embed_before.num_embeddings, self.embed_after.out_features

    def bias(self, before: Tensor) -> Tensor:
        """Return the terms [..., K] that the Markov head adds to the logits after these tokens, int [...]."""
        return self.embed_after(self.embed_before(before))

    def odds(self, hidden: Tensor, before: Tensor) -> Tensor:
        """Return the log-odds [...] that the tokens at these positions are kept, before the temperatures are applied.
        The log-odds are computed before a token is drawn, from the state [..., H] at its position and the token before
        it, int [...]. Raises UserError without a confidence head."""
        if self.confidence is None:
            raise UserError(
                "These DSpark heads have no confidence head; turn the option adaptive off."
            )
        read = torch.cat([hidden, self.embed_before(before)], -1) if self.with_markov else hidden
        return F.linear(read, self.confidence.weight, self.confidence.bias)[..., 0]

    def chance(self, odds: float, place: int) -> float:
        """Return the calibrated chance that the token at a position of the block is kept, from the log-odds given by
        ``odds``. Position 0 is the one right after the root."""
        temperature = self.temperatures[min(place, len(self.temperatures) - 1)]
        return float(torch.sigmoid(torch.tensor(odds / temperature)))


KIND = SparkHeads.kind()
