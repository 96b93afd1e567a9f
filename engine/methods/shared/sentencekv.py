"""SentenceKV: uses the sentences whose mean key is nearest to the mean query of the sentence that is being written.

Zhu et al., SentenceKV: Efficient LLM Inference via Sentence-Level Semantic KV Caching (COLM 2025). In sentences of the
prompt, only tokens to which the end of the prompt attends can be chosen; in sentences written later, all tokens can be
chosen. While the new sentence has only one token, the paper uses all columns. Here the mean query of the sentence
before is used until the new sentence has queries of its own.

Letters in shapes: Hkv key-value heads, D head size.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from engine.methods.shared.selector import (
    OBSERVERS,
    ColumnSelector,
    attention,
    pooled,
    recent,
)

OFFERED = 3  # how many of the prompt's tokens can be chosen, as a multiple of the budget
LONGEST = 48  # the most tokens of a sentence; a longer one is cut
STOPS = tuple(".!?…。！？\n")


class SentenceKV(ColumnSelector):
    key = "sentencekv"
    claim = "SentenceKV: better than SnapKV and Quest at equal budgets on PG-19, LongBench and RULER (lossy there)"
    follows = True

    def begin(self, past):
        self.ends: list[int] = []  # for each sentence, the number of columns up to its end
        self._read = self._start = 0
        self._observed, self._first = past.queries(OBSERVERS)
        self._asked = {layer: rows[:, -1:] for layer, rows in self._observed.items()}
        self._fresh = True  # whether ``_asked`` still holds queries of the sentence before
        self._means: dict[int, Tensor] = {}
        self._offered: dict[int, Tensor] = {}
        self._piece, self._prompt = past.piece, past.session.length

    def changes(self, past):
        self._cut(past.tokens, past.session.length)
        return True

    def _cut(self, tokens: Sequence[int], length: int) -> None:
        for place in range(self._read, length):
            if place + 1 - self._start >= LONGEST or self._is_stop(tokens[place]):
                self._start = place + 1
                self.ends.append(place + 1)
        self._read = length

    def _is_stop(self, token: int) -> bool:
        return self._piece is not None and self._piece(token).rstrip(" ").endswith(STOPS)

    def learn(self, queries: Mapping[int, Tensor], tokens: Sequence[int]) -> None:
        stops = [place for place, token in enumerate(tokens) if self._is_stop(token)]
        begins = stops[-1] + 1 if stops else 0
        for layer, rows in queries.items():
            new = rows[:, begins:]
            before = self._asked[layer]
            if not stops and not self._fresh:
                new = torch.cat([before, new], 1)
            self._asked[layer] = new if new.shape[1] else rows[:, -1:]
        self._fresh = bool(stops) and stops[-1] == len(tokens) - 1

    def columns(self, layer, keys):
        heads, length, width = keys.shape
        last = min(OBSERVERS, self.budget // 4)
        sentences = torch.tensor(self._sentences(length), device=keys.device)
        means = self._mean_keys(layer, keys)
        queries = self._asked[layer].reshape(heads, -1, width).mean(1)
        scores = (means @ queries[:, :, None])[:, :, 0]  # [Hkv, sentences]
        scores = torch.cat(
            [scores, scores.new_full((heads, 1), -1e9)], 1
        )  # the last score is for the unfinished sentence
        priority = scores[:, sentences].masked_fill(~self._may(layer, keys), -1e30)
        priority[:, : self.sinks] = priority[:, length - last :] = float("-inf")
        chosen = priority.topk(self.budget - self.sinks - last).indices.sort().values
        first = torch.arange(self.sinks, device=keys.device)
        ends = (places.expand(heads, -1) for places in (first, recent(length, last, keys.device)))
        return torch.cat([next(ends), chosen, next(ends)], 1)

    def _sentences(self, length: int) -> list[int]:
        """Return, for each of the ``length`` columns, the number of the sentence to which its token belongs."""
        numbers, start = [], 0
        for number, end in enumerate(self.ends):
            numbers += [number] * (end - start)
            start = end
        return numbers + [len(self.ends)] * (length - start)

    def _mean_keys(self, layer: int, keys: Tensor) -> Tensor:
        """Return the mean key of each finished sentence, [Hkv, sentences, D]. Means that were not computed yet are
        computed and stored."""
        means = self._means.get(layer, keys.new_zeros(keys.shape[0], 0, keys.shape[2]))
        starts = [0, *self.ends]
        new = range(means.shape[1], len(self.ends))
        added = [keys[:, starts[n] : starts[n + 1]].mean(1, keepdim=True) for n in new]
        self._means[layer] = torch.cat([means, *added], 1)
        return self._means[layer]

    def _may(self, layer: int, keys: Tensor) -> Tensor:
        """Return which columns can be chosen, bool [Hkv, T]; the module's docstring gives the rule."""
        heads, length, _ = keys.shape
        offered = self._offered.get(layer)
        if offered is None:
            before = keys[:, : self._prompt]
            scores = pooled(attention(self._observed.pop(layer), before, self._first).mean(1))
            offered = torch.zeros_like(scores, dtype=torch.bool)
            offered.scatter_(1, scores.topk(min(self._prompt, OFFERED * self.budget)).indices, True)
            self._offered[layer] = offered
        written = offered.new_ones(heads, length - offered.shape[1])
        return torch.cat([offered, written], 1)
