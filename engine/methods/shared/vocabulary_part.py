"""Lists of a target's tokens by frequency, by which the head of a draft model can be trimmed to the most frequent
tokens."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from engine.errors import UserError
from engine.model.language_model import LanguageModel
from engine.parts.digest import FIELD
from engine.parts.files import json_object
from engine.parts.kinds import Opener, PartKind

FILE = "config.json"
MOST_COUNT = 1 << 40  # the largest count; the sum over a whole vocabulary then fits into int64


@dataclass(frozen=True)
class Vocabulary:
    """A vocabulary in order of frequency. tokens: [V], the most frequent token first; of equally frequent tokens, the
    one of lower id first. counts: [V], in the order of ``tokens``, how often the target wrote each token."""

    tokens: Tensor
    counts: Tensor

    @classmethod
    def counted(cls, counts: Tensor) -> Vocabulary:
        """Return the vocabulary in the order of these counts. counts: [V], in the order of token ids, how often the
        target wrote each token."""
        order = counts.sort(descending=True, stable=True)
        return cls(order.indices, order.values)

    def coverage(self, kept: int) -> float:
        """Return the share of all counted tokens that the ``kept`` most frequent tokens make up."""
        return float(self.counts[:kept].sum() / self.counts.sum().clamp(min=1))

    def save(self, folder: Path, target_digest: str | None) -> None:
        """Write the tokens of positive count, with their counts, to a folder. target_digest: the digest of the target
        whose tokens were counted."""
        came = int((self.counts > 0).sum())
        content = {
            FIELD: target_digest,
            "tokens": self.tokens[:came].tolist(),
            "counts": self.counts[:came].tolist(),
        }
        folder.mkdir(parents=True, exist_ok=True)
        (folder / FILE).write_text(json.dumps(content) + "\n", "utf-8")


def _load(path: str, target, dtype, device: str) -> Vocabulary:
    name = Path(path).name
    try:
        content = json_object(Path(path) / FILE)
        tokens, counts = content["tokens"], content["counts"]
        numbers = [*tokens, *counts]
        if not all(type(number) is int and 0 <= number <= MOST_COUNT for number in numbers):
            raise ValueError("a token or a count is no whole number, or too large")
        if not tokens or len(tokens) != len(counts) or len(set(tokens)) != len(tokens):
            raise ValueError("tokens and counts do not belong together")
    except (ValueError, KeyError, TypeError):
        raise UserError(f"There is no list of frequent tokens to open at {name}.") from None
    if max(tokens) >= target.vocab_size:
        raise UserError(
            f"The list of frequent tokens in {name} does not fit the vocabulary of {target.name}."
        )
    times = torch.zeros(target.vocab_size, dtype=torch.int64)
    times[torch.tensor(tokens)] = torch.tensor(counts)
    return Vocabulary.counted(times)


def tiny_vocabulary(target: LanguageModel, opener: Opener) -> Vocabulary:
    return Vocabulary.counted(torch.randint(1000, (target.vocab_size,)))


KIND = PartKind("vocabulary", "list of frequent tokens", _load, tiny_vocabulary)
