"""A prompt with a picture, for a model that sees pictures."""

from __future__ import annotations

import base64

import numpy as np

from engine.errors import UserError
from engine.model.captions import CaptionsModel
from engine.model.language_model import LanguageModel
from engine.scenes.prompt_picture import SCENE, pixels, split
from engine.scenes.scene_talk import DESCRIBE


def shown(model: LanguageModel, prompt: str) -> tuple[LanguageModel, str, dict | None]:
    """The model, shown the prompt's picture or film, the prompt's words, and what a trace tells of the picture: its pixels; of a
    film those of its patches, each told once, and which of them stands where, frame by frame.

    Of a model that sees no pictures: itself, the prompt, None. Raises UserError, one sentence, for a picture that is none,
    for several, and for a picture or a question alone.
    """
    if not isinstance(model, CaptionsModel):
        return model, prompt, None
    words, address = split(prompt)
    if address is None:
        raise UserError(
            f"{model.name} is asked about a picture: add one to the prompt, ![]({SCENE}7) for instance."
        )
    if not words:
        raise UserError(f"Ask something about the picture: “{DESCRIBE}” for instance.")
    picture = pixels(address, model.side, model.frames)
    told = {"side": model.side, "patch": model.patch}
    if len(picture) == model.side:
        return model.seeing(picture), words, told | {"pixels": _flat(picture)}
    cut = picture.reshape(-1, model.patch, model.side // model.patch, model.patch, 3)
    patches = cut.swapaxes(1, 2).reshape(-1, model.patch**2 * 3)
    known, order = np.unique(patches, axis=0, return_inverse=True)
    film = {"frames": len(picture) // model.side, "order": order.tolist()}
    return model.seeing(picture), words, told | {"pixels": _flat(known)} | film


def _flat(pixels: np.ndarray) -> str:
    return base64.b64encode(pixels.tobytes()).decode()
