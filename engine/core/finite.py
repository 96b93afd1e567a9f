"""Checks that refuse NaN. A model whose weights or activations have overflowed gives NaN, which must decide nothing."""

import math
from collections.abc import Iterable

from torch import Tensor

from engine.core.sampling import on_the_host
from engine.errors import UserError


def refuse_nan(rows: Tensor, name: str) -> None:
    """Raises UserError if a row holds NaN or infinity, or only -inf.

    rows: logits [R, V] or hidden states [R, H]; -inf may stand for tokens that cannot come. Makes the host wait for the
    device.
    """
    if not rows.numel():
        return
    # a row's largest number is finite unless the row is not
    if not all(map(math.isfinite, _largest(rows))):
        raise UserError(f"{name} gave NaN or infinity in the place of logits; the run ends.")


def _largest(rows: Tensor) -> list[float]:
    """The largest number of each row, or its first NaN."""
    numbers = on_the_host(rows)
    if numbers is None:
        return rows.amax(-1).flatten().tolist()
    rows = numbers.reshape(-1, numbers.shape[-1])
    return [row[place] for row, place in zip(rows, rows.argmax(-1).tolist(), strict=True)]


def refuse_nan_among(probabilities: Iterable[float | None], name: str) -> None:
    """Raises UserError if a probability on the host is NaN; None is skipped. name: the name of the model, for the
    message."""
    if any(q is not None and math.isnan(q) for q in probabilities):
        raise UserError(f"{name} gave NaN in the place of probabilities; the run ends.")
