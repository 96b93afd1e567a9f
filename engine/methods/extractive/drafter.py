"""The likeliest answer among all spans of the prompt.

Castel et al., How Optimal is Greedy Decoding for Extractive Question Answering? (2022): exact-extract. An answer is a run of tokens of
the prompt, followed by the end of the text; the one with the largest probability is written. Greedy decoding need not write a span
at all, nor the likeliest one.

The paper reads every end of the passage once and sums up. Here the likeliest spans are read first, many in a pass, as a tree; a span whose
probability is no larger than that of a whole answer is left, since longer ones cannot be likelier. So the answer is the same, by fewer
rows.
"""

import math
from collections import defaultdict

import torch

from engine.core.options import whole
from engine.errors import UserError
from engine.methods.shared.text_search import Candidate, Path, SeveralTexts

AT_ONCE = 64  # spans of a pass
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
        for one, p in zip(chosen, self.laws([one.path for one in chosen]).values(), strict=True):
            logs = p.log()
            if one.path:
                self._end(one, logs)
            if len(one.path) < min(self.settings["longest"], self.room):
                rest += [
                    Candidate((*one.path, token), one.score + float(logs[token]))
                    for token in self._after[one.path] - self.ends
                ]
                self.chances |= {
                    (*one.path, token): float(p[token]) for token in self._after[one.path]
                }
        self._open = sorted(
            (one for one in rest if one.score > self._best.score), key=lambda one: -one.score
        )
        self.candidates = [*[self._best] * bool(self._best.path), *self._open]
        if not self._open:
            if not self._best.path:
                raise UserError(NO_SPAN)
            self.winner = self._best.path

    def _end(self, span: Candidate, logs: torch.Tensor) -> None:
        """Take this span for the answer if it is the likeliest so far. Where there is no room for its end, it does without."""
        path, score, ends = span.path, span.score, sorted(self.ends)
        if len(path) < self.room:
            if not ends:
                return
            path += (ends[int(logs[ends].argmax())],)
            score += float(logs[ends].logsumexp(-1))
        if score > self._best.score:
            self._best = Candidate(path, score, ended=True)
