"""Pictures as tokens: a patch of pixels is a token, and a digit before the patches says what to draw.

Every possible patch has its own token, so a picture is kept exactly. The text of a patch is its pixels
in shades, so that a terminal also shows the picture.
"""

from __future__ import annotations

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import PreTrainedTokenizerFast

from engine.model.picture import Picture
from engine.training.pictures.digits import LEVELS, SIDE

PICTURE = Picture(width=SIDE, height=SIDE, patch=2, levels=LEVELS, first=0)
SHADES = "·░▒█"
END, ANY = "<|endoftext|>", "<|any|>"
END_TOKEN = PICTURE.count
ANY_TOKEN = PICTURE.count + 1
FIRST_DIGIT = PICTURE.count + 2
VOCABULARY = FIRST_DIGIT + 10


def tokens_of(pictures: np.ndarray) -> np.ndarray:
    """[N, SIDE, SIDE] -> [N, places], row by row of patches."""
    patch, places = PICTURE.patch, SIDE // PICTURE.patch
    cut = pictures.reshape(-1, places, patch, places, patch).swapaxes(2, 3)
    weights = LEVELS ** np.arange(patch * patch)[::-1]
    return PICTURE.first + cut.reshape(len(pictures), places * places, -1) @ weights


def picture_tokenizer() -> PreTrainedTokenizerFast:
    """Words are patches and the ten digits; any other word means any digit."""
    words = ["".join(SHADES[level] for level in PICTURE.pixels(n)) for n in range(PICTURE.count)]
    words += [END, ANY, *"0123456789"]
    model = Tokenizer(WordLevel({word: token for token, word in enumerate(words)}, unk_token=ANY))
    model.pre_tokenizer = WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=model, eos_token=END, unk_token=ANY)
