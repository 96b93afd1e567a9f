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
    """Returns the model after it has been shown the prompt's picture or film, the words of the prompt, and a trace's
    entry on the picture. The entry holds the pixels; for a film, the pixels of its distinct patches, and the index of
    each patch of each frame.

    A model that sees no pictures is returned with the whole prompt and None. Raises UserError, one sentence, for an
    invalid picture, for several pictures, and for a picture or a question alone.
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
    entry = {"side": model.side, "patch": model.patch}
    if len(picture) == model.side:
        return model.seeing(picture), words, entry | {"pixels": _flat(picture)}
    cut = picture.reshape(-1, model.patch, model.side // model.patch, model.patch, 3)
    patches = cut.swapaxes(1, 2).reshape(-1, model.patch**2 * 3)
    distinct, order = np.unique(patches, axis=0, return_inverse=True)
    film = {"frames": len(picture) // model.side, "order": order.tolist()}
    return model.seeing(picture), words, entry | {"pixels": _flat(distinct)} | film


def _flat(pixels: np.ndarray) -> str:
    return base64.b64encode(pixels.tobytes()).decode()
