"""Opens feature drafters that read pictures (``engine.methods.shared.picture_cell``)."""

from functools import lru_cache

import torch

from engine.methods.shared.eagle_config import tiny_config
from engine.methods.shared.eagle_layout import read_cell
from engine.methods.shared.opened_cell import check_fits
from engine.methods.shared.picture_cell import PictureCell
from engine.model.language_model import LanguageModel
from engine.parts.kinds import Opener, PartKind


@lru_cache(maxsize=4)
def _opened(path: str, dtype: torch.dtype, device: str) -> PictureCell:
    return PictureCell.of(read_cell(path, dtype, device)).requires_grad_(False)


def _load(path: str, target: LanguageModel, dtype, device: str) -> PictureCell:
    cell = _opened(path, target.dtype, device)
    check_fits(cell, target)
    return cell


def tiny_cell(target: LanguageModel, opener: Opener | None = None) -> PictureCell:
    cell = PictureCell(tiny_config(target)).eval().requires_grad_(False)
    cell.fc.weight[:, target.hidden_size :] += torch.eye(target.hidden_size)
    return cell


KIND = PartKind("picture_cell", "feature drafter for pictures", _load, tiny_cell)
