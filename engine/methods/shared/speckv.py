"""SpecKV: uses the columns to which the answer is expected to attend, estimated from an answer that a draft model
writes.

Galim et al., Draft-based Approximate Inference for LLMs (ICLR 2026). The target is run once over the draft model's
continuation of the prompt. Chosen are the columns to which the end of the prompt and this continuation attend. In
contrast, ``snapkv`` chooses columns by the end of the prompt alone.

Letters in shapes: Hkv key-value heads, T columns, D head size.
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
        """Return the score of each column, at most 1: keys [Hkv, T, D] of a layer -> scores [Hkv, T]."""
        return pooled(attention(self._queries.pop(layer), keys, self._first).amax(1))
