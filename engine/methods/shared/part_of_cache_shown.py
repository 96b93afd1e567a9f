"""The exhibits of the part of the KV cache that a draft pass uses."""

import torch

from engine.core.exhibits import Exhibit, Gauge, Later, Matrix, Token, Words
from engine.methods.shared.selector import ColumnSelector, Past, Selector
from engine.methods.shared.sentencekv import SentenceKV

STRETCHES, BANDS = 28, 8  # the most columns and rows of the picture
SENTENCES, BEGINNING = 5, 12  # the most sentences that are quoted, and the most tokens of each


def exhibits(
    selector: Selector, past: Past, layers: list[int], reader: str, rest: str
) -> list[Exhibit | Later]:
    """Return the exhibits for a new choice of columns. layers: the indices of the layers of which only a part is used.
    reader: what the page calls the model that uses this part. rest: a sentence on the columns that are left out."""
    length = past.session.length
    if not layers:
        note = f"All layers have a sliding window, so {reader} reads what the target reads."
        return [Words(f"What {reader} reads", [note])]
    share = selector.share(length)
    note = rest
    if share == 1:
        note = f"The budget holds the whole text, so {reader} reads all of it."
    elif len(layers) < past.session.model.layers:
        note += " Layers with a sliding window are left as they are."
    panels = [Gauge(f"Bytes that {reader} reads of the keys and values", share, note=note)]
    if isinstance(selector, ColumnSelector) and share < 1:
        read = [(layer, selector.places[layer]) for layer in layers]
        tokens = list(past.tokens[:length])
        panels.append(Later(lambda: strip(read, tokens)))
        if isinstance(selector, SentenceKV):
            ends = list(selector.ends)
            panels.append(Later(lambda: sentences(read, tokens, ends)))
    return panels


def strip(read: list[tuple[int, torch.Tensor]], tokens: list[int]) -> Matrix:
    """Return a picture of the columns that are used. The text is cut into stretches, and the layers are grouped into
    bands. Each cell is the share of a stretch that is used, averaged over the layers of a band. read: pairs of a
    layer's index and the columns [Hkv, C] that the layer's heads use."""
    size = -(-len(tokens) // STRETCHES)
    starts = range(0, len(tokens), size)
    per_band = -(-len(read) // BANDS)
    bands = [read[at : at + per_band] for at in range(0, len(read), per_band)]
    rows = []
    for band in bands:
        share = torch.stack([_read(places, len(tokens)) for _, places in band]).mean(0)
        rows.append([float(share[at : at + size].mean()) for at in starts])
    return Matrix(
        "Where the text is read",
        [_name(band) for band in bands],
        [Token(tokens[at]) for at in starts],
        rows,
        note=f"Each cell: the share that is read of {size} tokens, the first of which is named.",
    )


def _name(band: list[tuple[int, torch.Tensor]]) -> str:
    first, last = band[0][0] + 1, band[-1][0] + 1
    return f"layer {first}" if first == last else f"layers {first}–{last}"


def _read(places: torch.Tensor, length: int) -> torch.Tensor:
    """Return, for each of the ``length`` columns, the share of the heads that use it, [length]. places: [Hkv, C], the
    columns that each head uses."""
    counts = torch.zeros(length)
    inside = places[places < length].cpu()
    counts.scatter_add_(0, inside, torch.ones(len(inside)))
    return counts / len(places)


def sentences(read: list[tuple[int, torch.Tensor]], tokens: list[int], ends: list[int]) -> Words:
    """Return the beginnings of those sentences of which the largest share is used, averaged over all heads of all
    layers. read: see ``strip``. ends: for each sentence, the number of tokens up to its end."""
    share = torch.stack([_read(places, len(tokens)) for _, places in read]).mean(0)
    cuts = list(zip([0, *ends], [*ends, len(tokens)], strict=True))
    most = sorted(
        cuts, key=lambda cut: -float(share[cut[0] : cut[1]].mean()) if cut[1] > cut[0] else 0.0
    )
    lines = []
    for start, end in most[:SENTENCES]:
        begins = [Token(token) for token in tokens[start:end][:BEGINNING]]
        more = " …" if end - start > BEGINNING else ""
        lines.append([f"{float(share[start:end].mean()):.0%} read: ", *begins, more])
    return Words("Sentences that are read most", lines)
