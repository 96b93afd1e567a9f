"""The likeliest answer among all spans of the prompt.

Castel et al., How Optimal is Greedy Decoding for Extractive Question Answering? (2022): exact-extract. An answer is a
run of tokens of the prompt, followed by the end of the text; the answer to which the model gives the largest
probability is written. Greedy decoding may write another span, or no span at all.

The paper runs the model over every suffix of the passage and sums the log-probabilities of the spans with which the
suffix begins. Here spans are extended token by token, the likeliest first, many in one pass as a tree. A span that is
no likelier than the best complete answer so far is dropped, because longer spans cannot be likelier. So the answer is
the same, but the model runs over fewer tokens.
"""

import math
from collections import defaultdict

import torch

from engine.core.options import whole
from engine.errors import UserError
from engine.methods.shared.text_search import Candidate, Path, SeveralTexts

AT_ONCE = 64  # most spans read in one pass
NO_SPAN = (
    "No run of tokens of the prompt can be the answer: the target gives none of them any probability, or names no token that "
    "ends a text."
)


class ExtractiveDrafter(SeveralTexts):
    key = "extractive"
    title = "Best span"
    summary = "Writes the likeliest run of tokens of the prompt, and ends: another law."
    text_law = "the likeliest span of the prompt"
    options = (whole("longest", 24, 1, 64, "Longest span").meaning("Most tokens of an answer."),)
    trial = {"longest": 3}
    texts = 1

    def begin(self, start):
        super().begin(start)
        prompt, longest = tuple(start.prompt), self.settings["longest"]
        self._after: dict[Path, set[int]] = defaultdict(set)  # what follows each run of the prompt
        for first in range(len(prompt)):
            for end in range(first, min(first + longest, len(prompt))):
                self._after[prompt[first:end]].add(prompt[end])
        self._open = [Candidate((), 0.0)]
        self._best = Candidate((), -math.inf, ended=True)

    def advance(self):
        chosen, rest = self._open[:AT_ONCE], self._open[AT_ONCE:]
        for span, p in zip(chosen, self.laws([span.path for span in chosen]).values(), strict=True):
            logs = p.log()
            if span.path:
                self._end(span, logs)
            if len(span.path) < min(self.settings["longest"], self.room):
                rest += [
                    Candidate((*span.path, token), span.score + float(logs[token]))
                    for token in self._after[span.path] - self.ends
                ]
                self.chances |= {
                    (*span.path, token): float(p[token]) for token in self._after[span.path]
                }
        self._open = sorted(
            (span for span in rest if span.score > self._best.score), key=lambda span: -span.score
        )
        self.candidates = [*[self._best] * bool(self._best.path), *self._open]
        if not self._open:
            if not self._best.path:
                raise UserError(NO_SPAN)
            self.winner = self._best.path

    def _end(self, span: Candidate, logs: torch.Tensor) -> None:
        """Make this span, followed by an end token, the best answer if it is likelier than the best so far. If the text
        has no room for an end token, the span alone is the answer. logs: log p [V] after the span."""
        path, score, ends = span.path, span.score, sorted(self.ends)
        if len(path) < self.room:
            if not ends:
                return
            path += (ends[int(logs[ends].argmax())],)
            score += float(logs[ends].logsumexp(-1))
        if score > self._best.score:
            self._best = Candidate(path, score, ended=True)
