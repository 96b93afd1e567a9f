"""Feature drafters: EAGLE cells, which predict the target's next hidden states."""

from functools import lru_cache
from weakref import WeakKeyDictionary

import torch

from engine.errors import UserError
from engine.methods.shared.compiled_cell_context import compiled_contexts
from engine.methods.shared.eagle_cell import EagleCell
from engine.methods.shared.eagle_config import tiny_config
from engine.methods.shared.eagle_layout import read_cell
from engine.model.language_model import LanguageModel
from engine.parts.kinds import Opener, PartKind

_BESIDE: WeakKeyDictionary[LanguageModel, dict[EagleCell, EagleCell]] = WeakKeyDictionary()
"""The cells that borrow rows of a target's head."""


@lru_cache(maxsize=4)
def open_cell(path: str, dtype, device: str) -> EagleCell:
    """A cell, opened once per process."""
    return _compiled(read_cell(path, dtype, device))


def _compiled(cell: EagleCell) -> EagleCell:
    if cell.fc.weight.device.type == "cpu":
        cell.make_context = compiled_contexts(cell)
    return cell


def _load(path: str, target: LanguageModel, dtype, device: str) -> EagleCell:
    cell = open_cell(path, target.dtype, device)  # it computes on the target's states
    check_fits(cell, target)
    if cell.lm_head is not None or not cell.pieces.own_vocabulary:
        return cell
    known = _BESIDE.setdefault(target, {})
    if cell not in known:
        known[cell] = _compiled(cell.beside(target.model))
    return known[cell]


def check_fits(cell: EagleCell, target: LanguageModel) -> None:
    """Raises UserError, one sentence, if the cell was made for a target of other sizes."""
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


def tiny_cell(target: LanguageModel, opener: Opener | None = None) -> EagleCell:
    cell = EagleCell(tiny_config(target)).eval().requires_grad_(False)
    # the state begins as the feature, so the cell guesses that the text goes on as before
    cell.fc.weight[:, target.hidden_size :] += torch.eye(target.hidden_size)
    return cell


KIND = PartKind("eagle", "feature drafter", _load, tiny_cell)
