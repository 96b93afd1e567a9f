"""Opens an EAGLE cell: checks that the cell fits its target, and compiles its passes on a CPU."""

from functools import lru_cache
from weakref import WeakKeyDictionary

import torch

from engine.errors import UserError
from engine.methods.shared.compiled_cell_context import compiled_contexts
from engine.methods.shared.eagle_cell import EagleCell
from engine.methods.shared.eagle_layout import read_cell
from engine.model.language_model import LanguageModel

_BESIDE: WeakKeyDictionary[LanguageModel, dict[EagleCell, EagleCell]] = WeakKeyDictionary()
"""Target -> cell -> copy of this cell with rows of the target's head, for cells that need these rows."""


@lru_cache(maxsize=4)
def _opened(path: str, dtype: torch.dtype, device: str) -> EagleCell:
    return compiled(read_cell(path, dtype, device))


def open_cell(path: str, target: LanguageModel, device: str) -> EagleCell:
    """Return the cell in a folder; each folder is opened only once per process. If the cell needs rows of the target's
    head, the result has them. Raises UserError if the cell does not fit the target."""
    cell = _opened(path, target.dtype, device)  # it computes on the target's states
    check_fits(cell, target)
    if cell.lm_head is not None or not cell.pieces.own_vocabulary:
        return cell
    cells = _BESIDE.setdefault(target, {})
    if cell not in cells:
        cells[cell] = compiled(cell.beside(target.model))
    return cells[cell]


def compiled(cell: EagleCell) -> EagleCell:
    if cell.fc.weight.device.type == "cpu":
        cell.make_context = compiled_contexts(cell)
    return cell


def check_fits(cell: EagleCell, target: LanguageModel) -> None:
    """Raise UserError if the sizes or layers of the cell do not fit the target."""
    config = cell.config
    wrong = _what_differs(cell, target)
    if wrong:
        raise UserError(
            f"This feature drafter was trained on another target than {target.name}: {wrong}."
        )
    layers = config.layers_of(target.layers)
    if not all(0 <= layer <= target.layers for layer in layers):
        raise UserError(
            f"This feature drafter reads the states {list(layers)} of its target, and {target.name} has "
            f"{target.layers} layers only."
        )


def _what_differs(cell: EagleCell, target: LanguageModel) -> str:
    config = cell.config
    if config.target_hidden_size != target.hidden_size:
        return (
            f"it reads states of {config.target_hidden_size} numbers, and the target's have "
            f"{target.hidden_size}"
        )
    if cell.embed_tokens is None and config.hidden_size != target.hidden_size:
        return "it borrows embeddings of another size"
    if config.vocab_size < min(target.vocab_size, target.embeddings) and (
        cell.embed_tokens is not None or cell.pieces.own_vocabulary
    ):
        return (
            f"it knows {config.vocab_size} tokens, and the target has {target.vocab_size} of them"
        )
    tokens = cell.target_tokens
    if tokens is not None and int(tokens.max()) >= target.vocab_size:
        return f"it drafts the token {int(tokens.max())}, which the target does not have"
    if cell.lm_head is None and config.hidden_size != target.hidden_size:
        return "it borrows a head of another size"
    return ""
