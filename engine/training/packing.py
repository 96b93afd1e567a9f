"""Packs documents into windows of a fixed number of tokens.

A window is filled with documents that fit into what is left of it. If none of the waiting documents fits, one is cut:
its first part fills the window, and the rest waits for a later window. Only documents without a prompt, such as
stories, are cut. A document with a prompt is cut only if no other document waits.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.training.corpus import (
    ANSWER_ONLY,
    FINISHING_MIX,
    MIX,
    available_mix,
    documents,
    make_vocabulary,
    read_corpora,
)
from engine.training.generators import Example

POOL = 48  # how many documents wait; the next document is picked among those of them that fit


@dataclass
class Encoded:
    """A document as tokens. tokens: int [n]. counted: bool [n], False for tokens whose prediction does not enter the
    loss. whole: if true, the document is cut only if all waiting documents are whole."""

    tokens: np.ndarray
    counted: np.ndarray
    whole: bool


class Encoder:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self._texts: dict[str, list[int]] = {}  # corpus texts recur every epoch

    def ids(self, text: str) -> list[int]:
        return self.tokenizer.backend_tokenizer.encode(text).ids

    def __call__(self, document: Example) -> Encoded:
        prompt = self.ids(document.prompt) if document.prompt else []
        if document.prompt:
            answer = self.ids(document.answer)
        else:
            if document.answer not in self._texts:
                self._texts[document.answer] = self.ids(document.answer)
            answer = self._texts[document.answer]
        tokens = np.array([*prompt, *answer, self.tokenizer.eos_token_id], dtype=np.uint16)
        counted = np.ones(len(tokens), dtype=bool)
        if document.workload in ANSWER_ONLY:
            counted[: len(prompt)] = False
        return Encoded(tokens, counted, bool(document.prompt))


class Mixer:
    """Draws encoded documents. It picks the workload of each document such that every workload keeps its share of all
    tokens drawn."""

    def __init__(self, tokenizer, data: Path, seed: int, split: str = "train"):
        self.texts = read_corpora(data, split)
        self.encode = Encoder(tokenizer)
        vocabulary = make_vocabulary(self.texts)
        self.streams = {
            w: documents(w, self.texts, vocabulary, seed)
            for w in available_mix(self.texts, MIX | FINISHING_MIX)
        }
        self.drawn: Counter[str] = Counter()
        self.documents: Counter[str] = Counter()
        self.sizes = {w: len(self.texts[w]) for w in self.streams if self.texts.get(w)}
        self._mix: dict[str, float] = {}
        self.draw_by(MIX)

    def draw_by(self, mix: dict[str, float]) -> None:
        """Change the shares of the workloads for all later documents. Each workload's stream of documents goes on from
        where it is."""
        if mix == self._mix:
            return
        self._mix, self.shares = mix, available_mix(self.texts, mix)
        self._before = self.drawn.copy()

    def __call__(self) -> Encoded:
        workload = min(
            self.shares, key=lambda w: (self.drawn[w] - self._before[w]) / self.shares[w]
        )
        encoded = self.encode(next(self.streams[workload]))
        self.drawn[workload] += len(encoded.tokens)
        self.documents[workload] += 1
        return encoded

    def readings(self) -> dict[str, float]:
        """Workload -> how many times its corpus has been gone through so far, as a fraction."""
        return {w: round(self.documents[w] / size, 2) for w, size in self.sizes.items()}


def windows(draw, length: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """An endless stream of windows, as pairs of tokens, uint16 [length], and counted, bool [length]. draw: a function
    that returns the next encoded document."""
    rng = random.Random(seed)
    pool: list[Encoded] = [draw() for _ in range(POOL)]
    while True:
        parts: list[Encoded] = []
        room = length
        while room:
            fitting = [i for i, e in enumerate(pool) if len(e.tokens) <= room]
            if fitting:
                index = rng.choice(fitting)
                part, pool[index] = pool[index], draw()
            else:
                index = next((i for i, e in enumerate(pool) if not e.whole), 0)
                whole = pool[index]
                part = Encoded(whole.tokens[:room], whole.counted[:room], False)
                pool[index] = Encoded(whole.tokens[room:], whole.counted[room:], False)
            parts.append(part)
            room -= len(part.tokens)
        yield np.concatenate([p.tokens for p in parts]), np.concatenate([p.counted for p in parts])
