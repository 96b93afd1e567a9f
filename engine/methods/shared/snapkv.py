"""SnapKV: uses the columns to which the end of the prompt attends, and all columns written later.

Li et al., SnapKV: LLM Knows What You are Looking for Before Generation (NeurIPS 2024). Chen et al., MagicDec (2024),
use it for drafting.
"""

from engine.methods.shared.selector import (
    OBSERVERS,
    ColumnSelector,
    attention,
    best_and_recent,
    pooled,
)


class SnapKV(ColumnSelector):
    key = "snapkv"
    claim = "MagicDec: up to 2.51 times as fast, Llama-3.1-8B, 32 to 256 texts at once"

    def begin(self, past):
        self._queries, self._first = past.queries(OBSERVERS)

    def changes(self, past):
        return not self.places

    def columns(self, layer, keys):
        scores = pooled(attention(self._queries.pop(layer), keys, self._first).mean(1))
        return best_and_recent(scores, self.budget, min(OBSERVERS, self.budget // 2))
