"""Opens cells that draft all tokens in one pass: EAGLE cells with a mask token and with ``mask_hidden``, the feature of
places where nothing is written yet.

Three layouts can be opened: ``peagle`` of vLLM's speculators; that of the authors, an EAGLE-3 file whose config has
``pard_token`` or ``ptd_token_id``; and an EAGLE-1 file with ``mask_hidden`` whose config has one of these two entries.
"""

from dataclasses import replace
from pathlib import Path

import torch

from engine.errors import UserError
from engine.methods.shared.eagle_cell import EagleCell, Pieces
from engine.methods.shared.eagle_config import MASKS, tiny_config
from engine.methods.shared.opened_cell import open_cell
from engine.model.language_model import LanguageModel
from engine.parts.kinds import Opener, PartKind


def _load(path: str, target: LanguageModel, dtype, device: str) -> EagleCell:
    cell, name = open_cell(path, target, device), Path(path).name
    if not cell.pieces.masks:
        raise UserError(f"{name} has no mask_hidden, from which tokens are drafted in one pass.")
    mask = cell.config.mask_token
    if mask is None:
        raise UserError(
            f"{name} drafts from mask tokens, and does not say which token that is ({MASKS[0]})."
        )
    if cell.embed_tokens is None and mask >= target.embeddings:
        raise UserError(f"{name} masks with the token {mask}, which {target.name} does not have.")
    return cell


def tiny_cell(target: LanguageModel, opener: Opener | None = None) -> EagleCell:
    cell = EagleCell(replace(tiny_config(target), mask_token=0), Pieces(masks=True))
    cell.eval().requires_grad_(False)
    cell.mask_hidden.normal_()
    cell.fc.weight[:, target.hidden_size :] += torch.eye(target.hidden_size)
    return cell


KIND = PartKind("parallel_eagle", "parallel feature drafter", _load, tiny_cell)
