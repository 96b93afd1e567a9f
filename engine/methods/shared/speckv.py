"""The columns that the answer will look at, guessed from the answer that a draft model writes.

Galim et al., Draft-based Approximate Inference for LLMs (ICLR 2026). The target reads the draft model's continuation behind
the prompt, once, and the keys that its rows look at are kept, as ``snapkv`` keeps those that the prompt's end looks at.
"""

from torch import Tensor

from engine.methods.shared.selector import (
    OBSERVERS,
    ColumnSelector,
    attention,
    best_and_recent,
    pooled,
)

AHEAD = 32  # tokens of the continuation


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
        """keys [Hkv, T, D] -> [Hkv, T], at most 1"""
        return pooled(attention(self._queries.pop(layer), keys, self._first).amax(1))
