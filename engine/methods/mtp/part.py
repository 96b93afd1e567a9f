"""Opens the multi-token-prediction layers of base checkpoints as cells that draft from the target's last state."""

from functools import lru_cache

import torch

from engine.methods.mtp.mtp_layout import read_mtp
from engine.methods.shared.eagle_cell import EagleCell
from engine.methods.shared.eagle_config import tiny_config
from engine.methods.shared.opened_cell import check_fits, compiled
from engine.model.language_model import LanguageModel
from engine.parts.kinds import Opener, PartKind
from engine.parts.mtp_fields import ROLE


@lru_cache(maxsize=4)
def _opened(path: str, dtype: torch.dtype, device: str) -> EagleCell:
    return compiled(read_mtp(path, dtype, device))


def _load(path: str, target: LanguageModel, dtype, device: str) -> EagleCell:
    cell = _opened(path, target.dtype, device)  # it computes on the target's states
    check_fits(cell, target)
    return cell


def tiny_layer(target: LanguageModel, opener: Opener | None = None) -> EagleCell:
    cell = EagleCell(tiny_config(target, "mtp")).eval().requires_grad_(False)
    # the state begins as the feature, so the layer guesses that the text goes on as before
    cell.fc.weight[:, target.hidden_size :] += torch.eye(target.hidden_size)
    return cell


KIND = PartKind(ROLE, "multi-token-prediction layer", _load, tiny_layer)
