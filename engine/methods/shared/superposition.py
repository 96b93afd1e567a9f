"""Several texts by one row a step: the row's input is a mixture of their last tokens.

Shen et al., Superposed Decoding: Multiple Generations from a Single Autoregressive Inference Pass (2024). The embeddings of the last
tokens of k texts, weighed by the texts' probabilities, are added up and read as if they were one token. The N likeliest tokens after this
row may continue each text; n-grams of a datastore decide which word fits which text, since the row does not know the texts apart.

The paper takes 200 off the score of a text whose end no n-gram knows. Here every token has at least the probability ``FLOOR`` by the n-grams,
which has the same effect and needs no second rule.
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
"""Orders of n-grams, and their shares in the mixture, by the paper."""
FLOOR = 1e-6

OPTIONS = (
    whole("texts", 3, 1, 8, "Texts").meaning("Texts that share each row."),
    whole("candidates", 9, 1, 64, advanced=True).meaning("Likeliest tokens that may continue a text."),
    number("mixture", 0.54, 0.0, 1.0, "n-grams", advanced=True).meaning("Share of the n-grams in the score of a token."),
)  # fmt: skip

Path = tuple[int, ...]


class Superposition:
    """texts: k texts with the logs of their scores, the best first."""

    def __init__(self, settings, datastore: Datastore, context: Sequence[int]) -> None:
        """context: the tokens before the texts."""
        self._settings, self._datastore = settings, datastore
        self._before = tuple(context[-max(SHARES) + 1 :])
        self.texts: list[tuple[Path, float]] = []

    def grow(self, p: Tensor) -> list[tuple[Path, float]]:
        """Continue all texts by a token. p: [V] after their common row. Returns the best k, which are ``texts`` from now on."""
        count = self._settings["texts"]
        if not self.texts:
            best = p.topk(min(count, p.shape[-1]))
            pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
            grown = [((token,), math.log(chance)) for token, chance in pairs if chance > 0]
        else:
            best = p.topk(min(self._settings["candidates"], p.shape[-1]))
            grown = [one for text in self.texts for one in self._continued(*text, best)]
            grown.sort(key=lambda one: -one[1])
        self.texts = grown[:count]
        return self.texts

    def mixed(self, embeddings: Tensor) -> Tensor:
        """[k, H], those of the last tokens -> [1, H]"""
        scores = torch.tensor([score for _, score in self.texts], dtype=torch.float64)
        return (scores.softmax(-1).to(embeddings) @ embeddings)[None]

    def _continued(self, path: Path, score: float, best) -> list[tuple[Path, float]]:
        known, share = self._ngrams((*self._before, *path)), self._settings["mixture"]
        found = []
        for token, chance in zip(best.indices.tolist(), best.values.tolist(), strict=True):
            if chance > 0:
                fits = math.log(max(FLOOR, known.get(token, 0.0)))
                more = (1 - share) * math.log(chance) + share * fits
                found.append(((*path, token), score + more))
        return found

    def _ngrams(self, text: Path) -> dict[int, float]:
        """The probability of each token that the n-grams know after this text."""
        mixed: Counter[int] = Counter()
        whole = 0.0
        for order, weight in SHARES.items():
            found = self._datastore.find(text[1 - order :]) if len(text) >= order - 1 else None
            if found is None:
                break  # nor does the datastore hold a longer end
            counts = Counter(
                token for run in self._datastore.continuations(found, 1) for token in run
            )
            if total := counts.total():
                whole += weight
                for token, count in counts.items():
                    mixed[token] += weight * count / total
        return {token: value / whole for token, value in mixed.items()} if whole else {}
