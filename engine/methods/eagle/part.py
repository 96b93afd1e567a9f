"""Feature drafters: EAGLE cells, which predict the target's next hidden states."""

from functools import lru_cache
from weakref import WeakKeyDictionary

import torch

from engine.methods.shared.eagle_cell import EagleCell
from engine.methods.shared.eagle_config import tiny_config
from engine.methods.shared.eagle_layout import read_cell
from engine.methods.shared.opened_cell import check_fits, compiled
from engine.model.language_model import LanguageModel
from engine.parts.kinds import Opener, PartKind

_BESIDE: WeakKeyDictionary[LanguageModel, dict[EagleCell, EagleCell]] = WeakKeyDictionary()
"""The cells that borrow rows of a target's head."""


@lru_cache(maxsize=4)
def open_cell(path: str, dtype, device: str) -> EagleCell:
    """A cell, opened once per process."""
    return compiled(read_cell(path, dtype, device))


def _load(path: str, target: LanguageModel, dtype, device: str) -> EagleCell:
    cell = open_cell(path, target.dtype, device)  # it computes on the target's states
    check_fits(cell, target)
    if cell.lm_head is not None or not cell.pieces.own_vocabulary:
        return cell
    known = _BESIDE.setdefault(target, {})
    if cell not in known:
        known[cell] = compiled(cell.beside(target.model))
    return known[cell]


def tiny_cell(target: LanguageModel, opener: Opener | None = None) -> EagleCell:
    cell = EagleCell(tiny_config(target)).eval().requires_grad_(False)
    # the state begins as the feature, so the cell guesses that the text goes on as before
    cell.fc.weight[:, target.hidden_size :] += torch.eye(target.hidden_size)
    return cell


KIND = PartKind("eagle", "feature drafter", _load, tiny_cell)
