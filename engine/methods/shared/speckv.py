"""SpecKV: reads the columns to which the answer is expected to attend, judged by an answer that a draft model writes.

Galim et al., Draft-based Approximate Inference for LLMs (ICLR 2026). The target reads the draft model's continuation once,
behind the prompt. The columns to which the rows of the continuation and of the prompt's end attend are chosen, as ``snapkv``
chooses the columns to which the prompt's end attends.
"""

from torch import Tensor

from engine.methods.shared.selector import (
    OBSERVERS,
    ColumnSelector,
    attention,
    best_and_recent,
    pooled,
)

AHEAD = 32  # number of tokens of the continuation


class SpecKV(ColumnSelector):
    key = "speckv"
    needs_draft = True
    claim = "SpecKV: more accurate than SnapKV at equal memory on RULER and LongBench (lossy there)"

    def begin(self, past):
        self._queries, self._first = past.queries(OBSERVERS, past.continuation(AHEAD))

    def changes(self, past):
        return not self.places

    def columns(self, layer, keys):
        last = min(OBSERVERS, self.budget // 2)
        return best_and_recent(self.scores(layer, keys), self.budget, last)

    def scores(self, layer: int, keys: Tensor) -> Tensor:
        """The score of each column, at most 1: keys [Hkv, T, D] of a layer -> scores [Hkv, T]."""
        return pooled(attention(self._queries.pop(layer), keys, self._first).amax(1))
