"""Checks, once per model and layer, whether a pass may stop at the layer and go on from there later.

Some architectures carry more than one hidden state from layer to layer. In such a model, rows that stopped at a layer
and went on later would get other logits than in a whole pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import torch

from engine.model.layers import Layers

if TYPE_CHECKING:
    from engine.model.language_model import LanguageModel

PROMPT, ROWS, PARENTS = (1, 2, 0, 3, 1), (2, 1, 0, 3), (-1, 0, 0, 1)

_KNOWN: WeakKeyDictionary[LanguageModel, dict[int, bool]] = WeakKeyDictionary()


def goes_on(model: LanguageModel, layer: int) -> bool:
    """Whether rows that stop at this layer, and go on from there later, get the logits of a whole pass. To find out, a
    small tree is run with and without a stop, once per model and layer."""
    results = _KNOWN.setdefault(model, {})
    if layer not in results:
        results[layer] = _compared(model, layer)
    return results[layer]


def _compared(model: LanguageModel, layer: int) -> bool:
    rows = [min(token, model.vocab_size - 1) for token in ROWS]
    session = model.session(len(PROMPT) + len(ROWS))
    session.prefill([min(token, model.vocab_size - 1) for token in PROMPT])
    expected, _ = session.feed(rows, PARENTS)
    expected = expected.clone()  # the next pass overwrites buffers on a device
    session.drop()
    below = Layers(stop=layer)
    parts = [session.through(rows[:2], below, PARENTS[:2])]
    parts.append(session.through(rows[2:], below, PARENTS[2:]))
    resumed = session.through(torch.cat(parts), Layers(first=layer), head=True)
    allowed = 0.02 if resumed.dtype in (torch.bfloat16, torch.float16) else 1e-3
    near = allowed * (expected.abs() + expected.std())
    return bool(((resumed - expected).abs() <= near).all())  # NaN is never near
