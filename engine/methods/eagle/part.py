"""Opens EAGLE cells, the feature drafters that predict the target's next hidden states."""

from pathlib import Path

import torch

from engine.errors import UserError
from engine.methods.shared.eagle_cell import EagleCell
from engine.methods.shared.eagle_config import tiny_config
from engine.methods.shared.opened_cell import open_cell
from engine.model.language_model import LanguageModel
from engine.parts.kinds import Opener, PartKind


def _load(path: str, target: LanguageModel, dtype, device: str) -> EagleCell:
    cell = open_cell(path, target, device)
    if cell.pieces.masks:
        raise UserError(
            f"{Path(path).name} drafts all tokens in one pass, from mask_hidden; the drafter parallel_eagle does that."
        )
    return cell


def tiny_cell(target: LanguageModel, opener: Opener | None = None) -> EagleCell:
    cell = EagleCell(tiny_config(target)).eval().requires_grad_(False)
    # the state begins as the feature, so the cell guesses that the text goes on as before
    cell.fc.weight[:, target.hidden_size :] += torch.eye(target.hidden_size)
    return cell


KIND = PartKind("eagle", "feature drafter", _load, tiny_cell)
