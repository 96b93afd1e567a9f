"""Superposed decoding: one row per step continues several texts; its input is a mixture of the texts' last tokens.

Shen et al., Superposed Decoding: Multiple Generations from a Single Autoregressive Inference Pass (2024). There are k
texts. The input of the row is the mean of the embeddings of their last tokens, weighted by the texts' probabilities.
Each of the N likeliest tokens after this row may continue each text. Since the row gives one distribution for all
texts, n-grams of a datastore decide which token fits which text.

In the paper 200 is subtracted from the score of a text whose last tokens are not an n-gram of the datastore. Here every
token has at least the probability ``FLOOR`` under the n-grams, which has the same effect and needs no second rule.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import torch
from torch import Tensor

from engine.core.options import number, whole
from engine.methods.shared.datastore_part import Datastore

SHARES = {2: 0.01, 3: 0.04, 4: 0.15, 5: 0.18, 6: 0.12}
"""Number of tokens of an n-gram -> the weight of these n-grams in the mixture of all n-grams, as in the paper."""
FLOOR = 1e-6

OPTIONS = (
    whole("texts", 3, 1, 8, "Texts").meaning("Texts that share each row."),
    whole("candidates", 9, 1, 64, advanced=True).meaning("Likeliest tokens that may continue a text."),
    number("mixture", 0.54, 0.0, 1.0, "n-grams", advanced=True).meaning("Share of the n-grams in the score of a token."),
)  # fmt: skip

Path = tuple[int, ...]


class Superposition:
    """A set of texts that are continued together. texts: pairs of a text's tokens and its log score, the best text
    first."""

    def __init__(self, settings, datastore: Datastore, context: Sequence[int]) -> None:
        """context: the tokens before these texts, beginning with the prompt."""
        self._settings, self._datastore = settings, datastore
        self._before = tuple(context[-max(SHARES) + 1 :])
        self.texts: list[tuple[Path, float]] = []

    def grow(self, p: Tensor) -> list[tuple[Path, float]]:
        """Continue all texts by one token, keep the best k of the results as ``texts``, and return them. p: [V], the
        distribution after the common row."""
        count = self._settings["texts"]
        if not self.texts:
            best = p.topk(min(count, p.shape[-1]))
            pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
            grown = [((token,), math.log(chance)) for token, chance in pairs if chance > 0]
        else:
            best = p.topk(min(self._settings["candidates"], p.shape[-1]))
            grown = [pair for text in self.texts for pair in self._continued(*text, best)]
            grown.sort(key=lambda pair: -pair[1])
        self.texts = grown[:count]
        return self.texts

    def mixed(self, embeddings: Tensor) -> Tensor:
        """Return the input [1, H] of the next common row: the weighted mean of embeddings. embeddings: [k, H], those of
        the texts' last tokens."""
        scores = torch.tensor([score for _, score in self.texts], dtype=torch.float64)
        return (scores.softmax(-1).to(embeddings) @ embeddings)[None]

    def _continued(self, path: Path, score: float, best) -> list[tuple[Path, float]]:
        probabilities, share = self._ngrams((*self._before, *path)), self._settings["mixture"]
        continued = []
        for token, chance in zip(best.indices.tolist(), best.values.tolist(), strict=True):
            if chance > 0:
                fits = math.log(max(FLOOR, probabilities.get(token, 0.0)))
                more = (1 - share) * math.log(chance) + share * fits
                continued.append(((*path, token), score + more))
        return continued

    def _ngrams(self, text: Path) -> dict[int, float]:
        """Return token -> probability of this token after ``text`` by the n-grams. The tokens are those that follow the
        last tokens of ``text`` somewhere in the datastore; {} if the datastore has no such place."""
        mixed: Counter[int] = Counter()
        whole = 0.0
        for order, weight in SHARES.items():
            match = self._datastore.find(text[1 - order :]) if len(text) >= order - 1 else None
            if match is None:
                break  # the datastore cannot hold a longer suffix either
            counts = Counter(
                token for run in self._datastore.continuations(match, 1) for token in run
            )
            if total := counts.total():
                whole += weight
                for token, count in counts.items():
                    mixed[token] += weight * count / total
        return {token: value / whole for token, value in mixed.items()} if whole else {}
