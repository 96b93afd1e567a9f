"""The words of the family captions, and what its models learn from: pictures of scenes with questions and answers.

Of one picture several questions are asked at once. None of them sees the others, so each is what a prompt will be: the picture,
a question, its answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import WordLevel
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from engine.model.captions import CaptionsConfig, patches_of
from engine.scenes.scene import SIDE, Scene, draw, invent_for
from engine.scenes.scene_talk import KINDS, asked, words

PATCH = 16  # pixels of a side
PLACES = SIDE // PATCH
FIRST_PATCH = 2
PATCHES = PLACES * PLACES
END, UNKNOWN = "<|endoftext|>", "<|unknown|>"
ROOM = 60  # tokens of text beside one picture
SHARES, FIRST = (0.0, 0.2, 0.35, 0.3, 0.15), (0.4, 0.12, 0.2, 0.18, 0.1)
"""How often each kind is asked, and asked first; a caption is asked first or not at all."""
IGNORED = -100


def caption_words() -> PreTrainedTokenizerFast:
    """A token for each patch, each word and each mark. Nobody can write a patch: no word holds its brackets."""
    patches = [f"<{row},{column}>" for row in range(PLACES) for column in range(PLACES)]
    every = [END, UNKNOWN, *patches, ".", ",", "?", *(f"▁{word}" for word in words())]
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


def captions_config(vocabulary: int, **shape) -> CaptionsConfig:
    return CaptionsConfig(
        vocab_size=vocabulary,
        picture_side=SIDE,
        patch_side=PATCH,
        first_patch=FIRST_PATCH,
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
    """B pictures, each with T tokens: those of its patches, and several texts.

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
        """The batch with some patches of its pictures only. kept: places of these patches [K], ascending. Texts
        follow right behind them."""
        columns = torch.cat([kept, torch.arange(PATCHES, self.tokens.shape[1])])
        less = PATCHES - len(kept)
        places = self.places[:, columns] - less
        places[:, : len(kept)] = torch.arange(len(kept))
        tokens, labels, texts = (
            rows[:, columns] for rows in (self.tokens, self.labels, self.texts)
        )
        return Batch(tokens, self.patches[:, kept], labels, texts, places, self.named[:, kept])


class Talks:
    """Batches of pictures with questions; a batch depends on the seed and its index only. held_out: take scenes that no training
    draws."""

    def __init__(self, tokenizer, seed: int = 0, held_out: bool = False) -> None:
        self._tokenizer, self._seed, self._held_out = tokenizer, seed, held_out
        self._ids_of: dict[str, list[int]] = {}

    def ids(self, text: str) -> list[int]:
        """The token ids of a text, kept because the same texts recur."""
        if text not in self._ids_of:
            self._ids_of[text] = self._tokenizer.backend_tokenizer.encode(text).ids
        return self._ids_of[text]

    def batch(self, index: int, rows: int, only: str | None = None) -> Batch:
        """Batch number ``index``, of ``rows`` pictures. Each picture has a caption and as many questions as fit; with ``only``, a single
        question of that kind."""
        generator = np.random.default_rng((self._seed, index))
        drawn_rows = [self._row(generator, only) for _ in range(rows)]
        pictures, *columns = zip(*drawn_rows, strict=True)
        tokens, labels, texts, places, named = (
            torch.from_numpy(np.stack(column)) for column in columns
        )
        patches = patches_of(torch.from_numpy(np.stack(pictures)), PATCH)
        return Batch(tokens, patches, labels, texts, places, named)

    def _named(self, scene: Scene) -> np.ndarray:
        """[P, 2]: the words for what stands in each patch."""
        things = {thing.cell: (thing.shape, thing.colour) for thing in scene}
        every = [things.get(cell, ("nothing", "nothing")) for cell in range(PATCHES)]
        return np.array([[self.ids(word)[0] for word in two] for two in every])

    def _row(self, generator: np.random.Generator, only: str | None) -> tuple[np.ndarray, ...]:
        scene = invent_for(generator, self._held_out)
        picture = draw(scene, generator)
        size = PATCHES + ROOM
        tokens, texts = np.zeros(size, np.int64), np.full(size, -1)
        labels, places = np.full(size, IGNORED), np.zeros(size, np.int64)
        tokens[:PATCHES] = FIRST_PATCH + np.arange(PATCHES)
        texts[:PATCHES], places[:PATCHES] = 0, np.arange(PATCHES)
        at, number = PATCHES, 0
        while at < size and not (only and number):
            kind = only or str(generator.choice(KINDS, p=SHARES if number else FIRST))
            exchange = asked(kind, scene, generator)
            if exchange is None:
                if only:
                    return self._row(generator, only)
                continue
            question, answer = self.ids(exchange.question), self.ids(exchange.answer)
            text = [*question, *answer, 0][: size - at]
            here, first, number = slice(at, at + len(text)), len(question) - 1, number + 1
            tokens[here], texts[here] = text, number
            places[here] = PATCHES + np.arange(len(text))
            labels[here][first:-1] = text[first + 1 :]
            at += len(text)
        return picture, tokens, labels, texts, places, self._named(scene)
