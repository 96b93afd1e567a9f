"""The words of the family captions, and what its models learn from: pictures of scenes, and films, with questions and answers.

Of one picture or film several questions are asked at once. None of them sees the others, so each is what a prompt will be: the picture,
a question, its answer.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import torch
from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import WordLevel
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from engine.model.captions import CaptionsConfig, patches_of
from engine.scenes.film import FRAMES, draw_film, frame_of, invent_film_for
from engine.scenes.film_talk import FILM_KINDS, FILM_WORDS, asked_film
from engine.scenes.scene import SIDE, Scene, draw, invent_for
from engine.scenes.scene_talk import KINDS, Asked, asked, words
from engine.scenes.scene_talk import PLACES as PLACE_NAMES

PATCH = 16  # pixels of a side
PLACES = SIDE // PATCH
FIRST_PATCH = 2
PATCHES = PLACES * PLACES  # of a picture, and of each frame
END, UNKNOWN = "<|endoftext|>", "<|unknown|>"
ROOM = 60  # tokens of text beside one picture
SHARES, FIRST = (0.0, 0.25, 0.35, 0.35, 0.05), (0.3, 0.15, 0.22, 0.23, 0.1)
COUNTING = 2700  # batches before things are counted more often; colours are known by then
LATER, LATER_FIRST = (0.0, 0.45, 0.1, 0.3, 0.15), (0.3, 0.3, 0.08, 0.2, 0.12)
FILM_SHARES, FILM_FIRST = (0.0, 0.4, 0.2, 0.4), (0.35, 0.25, 0.15, 0.25)
"""How often each kind is asked, and asked first; a caption is asked first or not at all."""
ROWS, FILM_ROWS = 32, 16  # pictures or films of a batch
PICTURES_FIRST, EVERY = 1200, 3
"""Batches before the first of films, so that a thing is found in one picture before it is found in eight; then one batch in so many
is of films."""
IGNORED = -100


def caption_words() -> PreTrainedTokenizerFast:
    """A token for each patch, each word and each mark. Nobody can write a patch: no word holds its brackets."""
    places = itertools.product(range(FRAMES), range(PLACES), range(PLACES))
    patches = [f"<{frame},{row},{column}>" for frame, row, column in places]
    spoken = sorted({*words(), *FILM_WORDS})
    every = [END, UNKNOWN, *patches, ".", ",", "?", *(f"▁{word}" for word in spoken)]
    known = {word: token for token, word in enumerate(every)}
    made = Tokenizer(WordLevel(known, unk_token=UNKNOWN))
    made.normalizer = normalizers.Sequence(
        [
            normalizers.Lowercase(),
            normalizers.Strip(),
            normalizers.Replace(Regex(r"\s+(?=[.,?])"), ""),
            normalizers.Replace(Regex(r"\s+"), " "),
        ]
    )
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation("isolated")]
    )
    made.decoder = decoders.Metaspace()
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token=END, unk_token=UNKNOWN)


@cache
def place_words() -> Tensor:
    """[P, 2]: the words for the place of each patch of a frame, the last of them first; twice the same where it has one word."""
    tokenizer, told = caption_words(), [place.split()[2:] for place in PLACE_NAMES]
    return torch.tensor(
        tokenizer.convert_tokens_to_ids([f"▁{each[at]}" for each in told for at in (-1, 0)])
    ).view(-1, 2)


def captions_config(vocabulary: int, **shape) -> CaptionsConfig:
    return CaptionsConfig(
        vocab_size=vocabulary,
        picture_side=SIDE,
        patch_side=PATCH,
        first_patch=FIRST_PATCH,
        frames=FRAMES,
        max_position_embeddings=256,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=0,
        pad_token_id=0,
        dtype="float32",
        **shape,
    )


@dataclass(frozen=True)
class Batch:
    """B pictures or B films, each with T tokens: those of its P patches, and several texts.

    tokens: [B, T]. patches: [B, P, D]. labels: [B, T], the token that follows, where it belongs to an answer. texts: [B, T],
    the text that a token belongs to, 0 for the picture, and -1 for what fills up the room. places: [B, T], positions. named:
    [B, P, 2], the words for the shape and the colour in each patch.
    """

    tokens: Tensor
    patches: Tensor
    labels: Tensor
    texts: Tensor
    places: Tensor
    named: Tensor

    @property
    def mask(self) -> Tensor:
        """bool [B, 1, T, T]: a token sees its text up to itself, and the picture."""
        own, other = self.texts[:, :, None], self.texts[:, None, :]
        every = torch.ones(own.shape[1], own.shape[1], dtype=torch.bool).tril()
        return (every & ((other == 0) | (own == other)))[:, None]

    def without(self, kept: Tensor) -> Batch:
        """The same pictures with these patches alone; kept: their places [K], ascending. Texts follow right behind them."""
        count = self.patches.shape[1]
        columns = torch.cat([kept, torch.arange(count, self.tokens.shape[1])])
        less = count - len(kept)
        places = self.places[:, columns] - less
        places[:, : len(kept)] = torch.arange(len(kept))
        tokens, labels, texts = (
            each[:, columns] for each in (self.tokens, self.labels, self.texts)
        )
        return Batch(tokens, self.patches[:, kept], labels, texts, places, self.named[:, kept])


class Talks:
    """Batches of pictures with questions; each depends on the seed and its index alone. held_out: of scenes that no training
    draws. pictures_first: batches of a training before the first of films."""

    def __init__(
        self, tokenizer, seed: int = 0, held_out: bool = False, pictures_first: int = 0
    ) -> None:
        self._tokenizer, self._seed, self._held_out = tokenizer, seed, held_out
        self._pictures_first = pictures_first
        self._known: dict[str, list[int]] = {}

    def ids(self, text: str) -> list[int]:
        """Texts recur."""
        if text not in self._known:
            self._known[text] = self._tokenizer.backend_tokenizer.encode(text).ids
        return self._known[text]

    def mixed(self, index: int) -> Batch:
        """The batch of a training: of pictures, or of films."""
        film = index >= self._pictures_first and index % EVERY == EVERY - 1
        return self.batch(index, FILM_ROWS if film else ROWS, film=film)

    def batch(self, index: int, rows: int, only: str | None = None, film: bool = False) -> Batch:
        """only: one question of this kind for each picture or film, in place of a caption and as many questions as fit."""
        generator = np.random.default_rng((self._seed, index))
        shares = (LATER, LATER_FIRST) if index >= COUNTING else (SHARES, FIRST)
        films = film or only in FILM_KINDS
        make = self._film if films else partial(self._picture, shares)
        found = [make(generator, only) for _ in range(rows)]
        pictures, *columns = zip(*found, strict=True)
        tokens, labels, texts, places, named = (
            torch.from_numpy(np.stack(each)) for each in columns
        )
        patches = patches_of(torch.from_numpy(np.stack(pictures)), PATCH)
        return Batch(tokens, patches, labels, texts, places, named)

    def _picture(
        self, shares: Sequence, generator: np.random.Generator, only: str | None
    ) -> tuple[np.ndarray, ...]:
        """shares: how often each kind is asked later, and first."""
        scene = invent_for(generator, self._held_out)
        while only and asked(only, scene, generator) is None:
            scene = invent_for(generator, self._held_out)
        picture = draw(scene, generator)

        def ask(number: int) -> Asked | None:
            often = shares[0 if number else 1]
            return asked(only or str(generator.choice(KINDS, p=often)), scene, generator)

        return picture, *self._row(PATCHES, ask, only is not None), self._named(scene)

    def _film(self, generator: np.random.Generator, only: str | None) -> tuple[np.ndarray, ...]:
        film = invent_film_for(generator, self._held_out)

        def ask(number: int) -> Asked:
            shares = FILM_SHARES if number else FILM_FIRST
            return asked_film(only or str(generator.choice(FILM_KINDS, p=shares)), film, generator)

        named = [self._named(frame_of(film, frame)) for frame in range(FRAMES)]
        row = self._row(FRAMES * PATCHES, ask, only is not None)
        return draw_film(film, generator), *row, np.concatenate(named)

    def _named(self, scene: Scene) -> np.ndarray:
        """[P, 2]: the words for what stands in each patch of a frame."""
        known = {thing.cell: (thing.shape, thing.colour) for thing in scene}
        every = [known.get(cell, ("nothing", "nothing")) for cell in range(PATCHES)]
        return np.array([[self.ids(word)[0] for word in two] for two in every])

    def _row(
        self, patches: int, ask: Callable[[int], Asked | None], once: bool
    ) -> tuple[np.ndarray, ...]:
        """Tokens, labels, texts, places. ask: the question of a number, None where it must be asked for again."""
        size = patches + ROOM
        tokens, texts = np.zeros(size, np.int64), np.full(size, -1)
        labels, places = np.full(size, IGNORED), np.zeros(size, np.int64)
        tokens[:patches] = FIRST_PATCH + np.arange(patches)
        texts[:patches], places[:patches] = 0, np.arange(patches)
        at, number = patches, 0
        while at < size and not (once and number):
            told = ask(number)
            if told is None:
                continue
            question, answer = self.ids(told.question), self.ids(told.answer)
            text = [*question, *answer, 0][: size - at]
            here, first, number = slice(at, at + len(text)), len(question) - 1, number + 1
            tokens[here], texts[here] = text, number
            places[here] = patches + np.arange(len(text))
            labels[here][first:-1] = text[first + 1 :]
            at += len(text)
        return tokens, labels, texts, places
