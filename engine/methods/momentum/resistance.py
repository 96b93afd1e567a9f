"""The resistance that a text offers to its own repetition.

Lan et al., Momentum Decoding: Open-ended Text Generation As Graph Exploration (2022). The text so far is a directed
graph: its nodes are tokens, and its edges lead from each token to the next. A token that goes on along a path of this
graph meets a resistance that grows with the length of the path.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from engine.core.constraint import Constraint

DEEPEST = 5  # a longer repetition meets the resistance of a repetition of this many tokens
SHARPNESS = 1000.0  # scores are multiplied by this before they become logits


class Resistance(Constraint):
    """Scores the k likeliest tokens by p(v) - alpha f(d(v)), and excludes all others. p is the plain softmax. d(v) is
    the length, at most ``DEEPEST`` tokens, of the longest run that ends with v and stands in the text already; it is 0
    for a new token. f(d) = d, as the authors have it for GPT-2.

    A score s becomes the logit asinh(x) with x = ``SHARPNESS`` s. This function is increasing, so the order of the
    scores stays. exp(asinh(x)) is about 2x if x is far above 1, and about 1 / (2 |x|) if x is far below -1. So in a
    softmax of the logits, tokens with scores well above 1 / ``SHARPNESS`` share the probability nearly in proportion to
    their scores, and beside them tokens with negative scores get almost none.
    """

    def __init__(self, prompt: Sequence[int], candidates: int, alpha: float) -> None:
        self._count, self._alpha = candidates, alpha
        self._runs: set[tuple[int, ...]] = set()
        self._end: tuple[int, ...] = ()
        self.commit(prompt)
        self.committed = 0
        self.key = ("momentum", candidates, alpha)

    def allowed(self, continuation: Sequence[int]) -> None:
        return None

    def scores(
        self, logits: Tensor, continuation: Sequence[int]
    ) -> list[tuple[int, float, int, float]]:
        """Return (token, p, depth d, score) for each of the k candidates, the likeliest first. They are the candidates
        for the token after the committed text and the tokens ``continuation``."""
        p = logits.float().softmax(-1)
        best = p.topk(min(self._count, int((p > 0).sum())))
        end = (*self._end, *continuation)
        own = {run for run in _runs(end, len(self._end))}
        candidates = []
        for token, chance in zip(best.indices.tolist(), best.values.tolist(), strict=True):
            depth = self._depth(end, token, own)
            candidates.append((token, chance, depth, chance - self._alpha * depth))
        return candidates

    def weighed(self, logits: Tensor, continuation: Sequence[int]) -> Tensor:
        tokens, _, _, scores = zip(*self.scores(logits, continuation), strict=True)
        weighed = torch.full_like(logits, -torch.inf)
        sharp = torch.tensor(scores, dtype=torch.float64) * SHARPNESS
        weighed[list(tokens)] = sharp.asinh().to(logits)
        return weighed

    def commit(self, tokens: Sequence[int]) -> None:
        self.committed += len(tokens)
        end = (*self._end, *tokens)
        self._runs |= {*_runs(end, len(self._end))}
        self._end = end[-DEEPEST + 1 :]

    def _depth(self, end: tuple[int, ...], token: int, own: set[tuple[int, ...]]) -> int:
        for depth in range(min(DEEPEST, len(end) + 1), 0, -1):
            run = (*end[len(end) - depth + 1 :], token)
            if run in self._runs or run in own:
                return depth
        return 0


def _runs(text: tuple[int, ...], first: int) -> Iterator[tuple[int, ...]]:
    """Yield all runs of at most ``DEEPEST`` tokens that end at the index ``first`` of the text or later."""
    for end in range(first + 1, len(text) + 1):
        for length in range(1, min(DEEPEST, end) + 1):
            yield text[end - length : end]
