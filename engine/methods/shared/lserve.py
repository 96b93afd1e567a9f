"""LServe: half of the heads attend to the beginning and the end of the text; the others also attend to chosen pages,
whose keys are near the last query.

Yang et al., LServe: Efficient Long-sequence LLM Serving with Unified Sparse Attention (MLSys 2025). A page has four
parts. The score of a part is an upper bound on the products of the last query with the part's keys, as in Quest. The
score of a page is the largest score of its parts. The pages are chosen anew only after some steps. The paper learns
which heads need only the beginning and the end of the text. Here these are the half of the heads that gave the least
attention to the middle of the prompt.

Letters in shapes: Hkv key-value heads, D head size.
"""

import torch
from torch import Tensor

from engine.methods.shared.selector import OBSERVERS, ColumnSelector, attention, recent

INTERVAL = 4  # steps for which the pages stay chosen
PARTS, LONGEST = 4, 16  # parts of a page; the most tokens of a part


class LServe(ColumnSelector):
    key = "lserve"
    claim = "LServe: decoding 1.3 to 2.1 times as fast as vLLM at the same accuracy (lossy there)"
    follows = True

    def begin(self, past):
        observed, first = past.queries(OBSERVERS)
        self._asked = {layer: rows[:, -1] for layer, rows in observed.items()}
        self._steps = 0
        length, last = past.session.length, self.budget // 4
        far = {}
        for layer, rows in observed.items():
            weights = attention(rows, past.session.columns(layer)[0][0], first).mean(1)
            far[layer] = weights[:, self.sinks : length - last].sum(1)
        middle = torch.cat(list(far.values())).median()
        self._near = {layer: shares <= middle for layer, shares in far.items()}

    def learn(self, queries, tokens):
        self._asked = {layer: rows[:, -1] for layer, rows in queries.items()}

    def changes(self, past):
        self._steps += 1
        return self._steps % INTERVAL == 1

    def columns(self, layer, keys):
        heads, length, _ = keys.shape
        part = max(1, min(LONGEST, self.budget // 64))
        page = PARTS * part
        count = max(0, self.budget - self.sinks - self.budget // 4) // page
        last = self.budget - self.sinks - count * page
        pages = (length - last - self.sinks) // page
        start = length - last - pages * page
        bounds = self._bounds(
            layer, keys[:, start : length - last].unflatten(1, (pages, PARTS, part))
        )
        best = bounds.topk(count).indices.sort().values[:, :, None]
        chosen = (start + best * page + torch.arange(page, device=keys.device)).flatten(1)
        first = torch.arange(self.sinks, device=keys.device).expand(heads, -1)
        far = torch.cat([first, chosen, recent(length, last, keys.device).expand(heads, -1)], 1)
        ends = recent(length, self.budget - self.sinks, keys.device).expand(heads, -1)
        return torch.where(self._near[layer][:, None], torch.cat([first, ends], 1), far)

    def _bounds(self, layer: int, pages: Tensor) -> Tensor:
        """Return an upper bound on the products of the last query with the keys of each page: keys [Hkv, pages, parts,
        tokens, D] -> bounds [Hkv, pages]."""
        high, low = pages.amax(3)[:, None], pages.amin(3)[:, None]
        query = self._asked[layer].unflatten(0, (len(pages), -1))[:, :, None, None]
        return torch.maximum(query * high, query * low).sum(-1).amax((1, 3))
