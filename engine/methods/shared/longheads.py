"""LongHeads: each head attends to chosen chunks of the text, moved to positions directly before the new rows.

Lu et al., LongHeads: Multi-Head Attention is Secretly a Long Context Processor (2024), a way to use texts that are
longer than a model's window. Each head attends to the first chunk, the last chunks, and the chunks whose representation
is nearest to the last query. Keys are rotated to their new positions. In the paper the representation of a chunk is
computed from the chunk's queries; here the mean key of the chunk is used in place of these queries.

Letters in shapes: Hkv key-value heads, C chosen columns, D head size.
"""

import torch
from torch import Tensor

from engine.errors import UserError
from engine.methods.shared.selector import OBSERVERS, ColumnSelector, recent

CHUNKS, LAST = 16, 4  # chunks that a head reads; how many of these are the last chunks of the text


class LongHeads(ColumnSelector):
    key = "longheads"
    claim = "LongHeads: Llama-2-7B finds a passkey among 128k tokens, beyond its window (not the model's law there)"
    follows = True

    def begin(self, past):
        model = past.session.model
        self._rotary = getattr(model.model.base_model, "rotary_emb", None)
        if self._rotary is None:
            raise UserError(
                f"The selector longheads moves keys by rotation, and {model.name} rotates none."
            )
        observed, _ = past.queries(OBSERVERS)
        self.learn(observed, ())

    def learn(self, queries, tokens):
        self._asked = {layer: rows[:, -1] for layer, rows in queries.items()}

    def changes(self, past):
        return True

    def columns(self, layer, keys):
        heads, length, _ = keys.shape
        first = size = max(1, self.budget // CHUNKS)
        between = CHUNKS - 1 - LAST if self.budget >= CHUNKS else 0
        last = self.budget - first - between * size
        count = (length - first - last) // size
        start = length - last - count * size
        chunks = keys[:, start : length - last].unflatten(1, (count, size))
        queries = self._asked[layer].unflatten(0, (heads, -1)).mean(1)[:, None]
        scores = (represented(chunks) * queries).sum(-1)
        best = scores.topk(between).indices.sort().values[:, :, None]
        chosen = (start + best * size + torch.arange(size, device=keys.device)).flatten(1)
        begins = torch.arange(first, device=keys.device).expand(heads, -1)
        ends = recent(length, last, keys.device).expand(heads, -1)
        return torch.cat([begins, chosen, ends], 1)

    def chosen(self, layer, keys, values):
        keys, values = super().chosen(layer, keys, values)
        places, count = self.places[layer], keys.shape[2]
        moved = self._length - count + torch.arange(count, device=keys.device) - places
        return turned(keys[0], *self._rotary(values, moved))[None], values


def represented(chunks: Tensor) -> Tensor:
    """Return the representations of chunks of keys [Hkv, chunks, tokens, D] -> [Hkv, chunks, D]. The representation is
    the output of attention in which the query is the chunk's mean key, and both keys and values are the chunk's
    keys."""
    mean = chunks.mean(2, keepdim=True)
    weights = ((chunks * mean).sum(-1, keepdim=True) * chunks.shape[-1] ** -0.5).softmax(2)
    return (chunks * weights).sum(2)


def turned(keys: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Rotate keys [Hkv, C, D], which already have rotary positions, by further angles. cosines, sines: [Hkv, C, d], of
    the angles for the first d dimensions of a head; the other dimensions are not changed."""
    width = cosines.shape[-1]
    head, rest = keys[..., :width], keys[..., width:]
    low, high = head.chunk(2, -1)
    return torch.cat([head * cosines + torch.cat([-high, low], -1) * sines, rest], -1)
