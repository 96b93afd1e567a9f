"""Several texts for one pass per token: the target reads mixtures of tokens (``engine.methods.shared.superposition``).

Shen et al., Superposed Decoding: Multiple Generations from a Single Autoregressive Inference Pass (2024). Lossy: after
the first token, the target reads no single text but a mixture of several texts. Of the texts that have ended or reached
the greatest length, the one with the best score per token is written.
"""

import torch

from engine.core.finite import refuse_nan
from engine.core.sampling import display_distribution
from engine.methods.shared.superposition import OPTIONS, Superposition
from engine.methods.shared.text_search import Candidate, Path, SeveralTexts
from engine.model.layers import EVERY


class SuperposedTextsDrafter(SeveralTexts):
    key = "superposed_texts"
    title = "Superposed Decoding"
    summary = "The target writes several texts with one row a token, from mixtures of their words: another law."
    text_law = "superposed decoding"
    options = OPTIONS
    needs = {"datastore": "datastore"}
    trial = {"texts": 2, "candidates": 4}
    texts = 1
    score_name = "score"

    def __init__(self, settings, models) -> None:
        super().__init__(settings, models.target)
        self._datastore = models.part("datastore")

    @classmethod
    def build(cls, settings, models):
        return cls(settings, models)

    def begin(self, start):
        super().begin(start)
        self._texts = Superposition(self.settings, self._datastore, start.prompt)
        self._ended: list[tuple[Path, float]] = []

    def advance(self):
        p = self._first() if not self._texts.texts else self._next()
        grown = self._texts.grow(p)
        for path, _ in grown:
            self.chances[path] = float(p[path[-1]])
        self._ended += [text for text in grown if self.over(text[0])]
        self._texts.texts = [text for text in grown if not self.over(text[0])]
        running = self._texts.texts
        self.candidates = [
            Candidate(path, score / len(path), ended)
            for texts, ended in ((running, False), (self._ended, True))
            for path, score in texts
        ]
        self.candidates.sort(key=lambda candidate: -candidate.score)
        if not running or len(self._ended) >= self.settings["texts"]:
            self.winner = next(text.path for text in self.candidates if text.ended)

    def _first(self):
        return self.laws([()])[()]

    def _next(self):
        """Run the target over one row, the mixture of the texts' last tokens. Return p [V] of the token that follows
        this row."""
        session = self.start.target
        lasts = self.target.readable([path[-1] for path, _ in self._texts.texts])
        embeddings = self.target.embed(torch.tensor(lasts, device=self.target.device))
        mixed = self._texts.mixed(embeddings)
        row = session.through(mixed, EVERY, [session.rows - 1], head=True)[0]
        self._passes += 1
        refuse_nan(row, self.target.name)
        return display_distribution(row.float().cpu(), self.sampling)
