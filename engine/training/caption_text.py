"""The vocabulary of the family captions, and the batches from which its models learn: pictures and films with
questions and answers.

One row of a batch holds one picture or film and several texts, each a question and its answer. The attention mask
keeps these texts apart. So the model sees each text as it would see it in use, as one question after the picture.
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

PATCH = 16  # pixels along a side of a patch
PLACES = SIDE // PATCH  # patches along a side of a picture
FIRST_PATCH = 2  # the token of the first patch
PATCHES = PLACES * PLACES  # patches of a picture, or of a frame of a film
END, UNKNOWN = "<|endoftext|>", "<|unknown|>"
ROOM = 60  # tokens of text beside one picture or film
SHARES, FIRST = (0.0, 0.25, 0.35, 0.35, 0.05), (0.3, 0.15, 0.22, 0.23, 0.1)
COUNTING = 2700  # the batch from which on questions about numbers are more frequent; colours are learned by then
LATER, LATER_FIRST = (0.0, 0.45, 0.1, 0.3, 0.15), (0.3, 0.3, 0.08, 0.2, 0.12)
FILM_SHARES, FILM_FIRST = (0.0, 0.4, 0.2, 0.4), (0.35, 0.25, 0.15, 0.25)
"""Shares of the kinds of questions in a row. SHARES holds for all questions but the first, FIRST for the first
question. From batch number COUNTING on, LATER and LATER_FIRST hold instead of them. FILM_SHARES and FILM_FIRST hold
for films. Only a first question may ask for a caption."""
ROWS, FILM_ROWS = 32, 16  # pictures of a batch, or films of a batch
PICTURES_FIRST, EVERY = 1200, 3
"""A training begins with PICTURES_FIRST batches of pictures only, so that the model learns to find a thing in one
picture before it has to find it in eight frames. After these, one of EVERY batches has films."""
IGNORED = -100


def caption_words() -> PreTrainedTokenizerFast:
    """The tokenizer of the family, with one token for each patch of a picture, each word and each punctuation mark.
    Text can never contain a patch's token, because no word is written in angle brackets."""
    places = itertools.product(range(FRAMES), range(PLACES), range(PLACES))
    patches = [f"<{frame},{row},{column}>" for frame, row, column in places]
    spoken = sorted({*words(), *FILM_WORDS})
    every = [END, UNKNOWN, *patches, ".", ",", "?", *(f"▁{word}" for word in spoken)]
    vocabulary = {word: token for token, word in enumerate(every)}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Lowercase(),
            normalizers.Strip(),
            normalizers.Replace(Regex(r"\s+(?=[.,?])"), ""),
            normalizers.Replace(Regex(r"\s+"), " "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation("isolated")]
    )
    tokenizer.decoder = decoders.Metaspace()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, unk_token=UNKNOWN)


@cache
def place_words() -> Tensor:
    """The words for the position of each of the P patches of a frame, [P, 2]: the tokens of the last and the first
    word of the position's name. If the name has only one word, both are the same."""
    tokenizer, names = caption_words(), [place.split()[2:] for place in PLACE_NAMES]
    return torch.tensor(
        tokenizer.convert_tokens_to_ids([f"▁{name[at]}" for name in names for at in (-1, 0)])
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
    """A batch of B pictures or B films with texts about them. Each row has T tokens: those of its P patches, then
    those of several texts.

    tokens: [B, T].
    patches: [B, P, D], the D pixel values of each patch.
    labels: [B, T], the next token if it belongs to an answer, otherwise ``IGNORED``.
    texts: [B, T], the number of the text to which a token belongs, from 1; 0 for a patch; -1 for padding.
    places: [B, T], the positions that the model is told; every text starts directly after the patches.
    named: [B, P, 2], the tokens of the words for the shape and the colour in each patch.
    """

    tokens: Tensor
    patches: Tensor
    labels: Tensor
    texts: Tensor
    places: Tensor
    named: Tensor

    @property
    def mask(self) -> Tensor:
        """The attention mask, bool [B, 1, T, T]. A token sees all patches before it, the earlier tokens of its own
        text, and itself."""
        own, other = self.texts[:, :, None], self.texts[:, None, :]
        every = torch.ones(own.shape[1], own.shape[1], dtype=torch.bool).tril()
        return (every & ((other == 0) | (own == other)))[:, None]

    def without(self, kept: Tensor) -> Batch:
        """The batch with only some patches of each picture. The positions are counted anew, so that the texts start
        directly after these patches. kept: the numbers of the patches, [K], in ascending order."""
        count = self.patches.shape[1]
        columns = torch.cat([kept, torch.arange(count, self.tokens.shape[1])])
        less = count - len(kept)
        places = self.places[:, columns] - less
        places[:, : len(kept)] = torch.arange(len(kept))
        tokens, labels, texts = (
            table[:, columns] for table in (self.tokens, self.labels, self.texts)
        )
        return Batch(tokens, self.patches[:, kept], labels, texts, places, self.named[:, kept])


class Talks:
    """Makes batches of pictures or films with questions. A batch depends only on the seed and on its index. held_out:
    whether its scenes are held out from all trainings. pictures_first: how many batches come before the first batch of
    films."""

    def __init__(
        self, tokenizer, seed: int = 0, held_out: bool = False, pictures_first: int = 0
    ) -> None:
        self._tokenizer, self._seed, self._held_out = tokenizer, seed, held_out
        self._pictures_first = pictures_first
        self._known: dict[str, list[int]] = {}

    def ids(self, text: str) -> list[int]:
        """The tokens of a text. They are stored, because the same texts come often."""
        if text not in self._known:
            self._known[text] = self._tokenizer.backend_tokenizer.encode(text).ids
        return self._known[text]

    def mixed(self, index: int) -> Batch:
        """The batch with this index in a training. It has films if ``pictures_first`` and ``EVERY`` say so, otherwise
        pictures."""
        film = index >= self._pictures_first and index % EVERY == EVERY - 1
        return self.batch(index, FILM_ROWS if film else ROWS, film=film)

    def batch(self, index: int, rows: int, only: str | None = None, film: bool = False) -> Batch:
        """A batch of ``rows`` pictures or films. only: a kind of question; each row then has a single question of this
        kind. If None, each row has as many questions as fit, of all kinds."""
        generator = np.random.default_rng((self._seed, index))
        shares = (LATER, LATER_FIRST) if index >= COUNTING else (SHARES, FIRST)
        films = film or only in FILM_KINDS
        make = self._film if films else partial(self._picture, shares)
        examples = [make(generator, only) for _ in range(rows)]
        pictures, *columns = zip(*examples, strict=True)
        tokens, labels, texts, places, named = (
            torch.from_numpy(np.stack(column)) for column in columns
        )
        patches = patches_of(torch.from_numpy(np.stack(pictures)), PATCH)
        return Batch(tokens, patches, labels, texts, places, named)

    def _picture(
        self, shares: Sequence, generator: np.random.Generator, only: str | None
    ) -> tuple[np.ndarray, ...]:
        """A row of a batch about one picture, as (pixels, tokens, labels, texts, places, named). shares: two lists of
        shares of the kinds of questions, for later questions and for the first question."""
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
        """The tokens of the words for the shape and the colour in each patch of a picture or frame, [P, 2]."""
        words_of = {thing.cell: (thing.shape, thing.colour) for thing in scene}
        every = [words_of.get(cell, ("nothing", "nothing")) for cell in range(PATCHES)]
        return np.array([[self.ids(word)[0] for word in two] for two in every])

    def _row(
        self, patches: int, ask: Callable[[int], Asked | None], once: bool
    ) -> tuple[np.ndarray, ...]:
        """Tokens, labels, texts and places of a row. ask(number): returns a question for the row, where number 0 is
        the first question; if it returns None, it is called again. once: whether the row has only one question."""
        size = patches + ROOM
        tokens, texts = np.zeros(size, np.int64), np.full(size, -1)
        labels, places = np.full(size, IGNORED), np.zeros(size, np.int64)
        tokens[:patches] = FIRST_PATCH + np.arange(patches)
        texts[:patches], places[:patches] = 0, np.arange(patches)
        at, number = patches, 0
        while at < size and not (once and number):
            talk = ask(number)
            if talk is None:
                continue
            question, answer = self.ids(talk.question), self.ids(talk.answer)
            text = [*question, *answer, 0][: size - at]
            here, first, number = slice(at, at + len(text)), len(question) - 1, number + 1
            tokens[here], texts[here] = text, number
            places[here] = patches + np.arange(len(text))
            labels[here][first:-1] = text[first + 1 :]
            at += len(text)
        return tokens, labels, texts, places
