"""A short prompt made of those pieces of a long one that are most relevant to its end.

Pieces are scored by Okapi BM25 (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009) over token ids: by
how many of the end's rarer tokens a piece holds. No model of meaning is involved: a piece is found if the end repeats
its names, numbers or words, but not if the end says the same thing in other words.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

FLATTEN = 1.2  # k1: how soon repetitions of a token in a piece stop adding to the score
BY_LENGTH = 0.75  # b: how strongly long pieces are penalised for their length


@dataclass(frozen=True)
class Piece:
    """The tokens ``start`` to ``end`` of the prompt. score: how relevant they are to the prompt's end. kept: whether
    the short prompt has them."""

    start: int
    end: int
    score: float
    kept: bool

    def __len__(self) -> int:
        return self.end - self.start


@dataclass(frozen=True)
class ShortPrompt:
    """A shortened prompt. tokens: its tokens, in the order of the prompt. pieces: all pieces of the prompt before its
    end, kept or not."""

    tokens: Sequence[int]
    pieces: Sequence[Piece]


def shortened(prompt: Sequence[int], ending: int, piece: int, most: int) -> ShortPrompt:
    """Return a prompt of the first token, the best pieces, and the last ``ending`` tokens. A piece has ``piece``
    tokens; all kept pieces together have at most ``most`` tokens. The first token is kept because models attend to it
    strongly. A prompt with at most 1 + ``most`` + ``ending`` tokens is returned whole."""
    if len(prompt) <= 1 + most + ending:
        return ShortPrompt(list(prompt), ())
    cut = len(prompt) - ending
    bounds = [(start, min(start + piece, cut)) for start in range(1, cut, piece)]
    scores = bm25([prompt[start:end] for start, end in bounds], prompt[cut:])
    chosen, room = set(), most
    for place in sorted(range(len(bounds)), key=lambda place: (-scores[place], -place)):
        start, end = bounds[place]
        if scores[place] > 0 and end - start <= room:
            chosen.add(place)
            room -= end - start
    pieces = [
        Piece(start, end, scores[place], place in chosen)
        for place, (start, end) in enumerate(bounds)
    ]
    kept_pieces = [prompt[piece.start : piece.end] for piece in pieces if piece.kept]
    tokens = [prompt[0], *(token for passage in kept_pieces for token in passage), *prompt[cut:]]
    return ShortPrompt(tokens, pieces)


def bm25(pieces: Sequence[Sequence[int]], query: Sequence[int]) -> list[float]:
    """Return one score per piece: the sum of the BM25 weights of the query's distinct tokens in the piece."""
    counts = [Counter(piece) for piece in pieces]
    mean = sum(map(len, pieces)) / max(1, len(pieces))
    holders = Counter(token for count in counts for token in count)
    rarity = {
        token: math.log(1 + (len(pieces) - holders[token] + 0.5) / (holders[token] + 0.5))
        for token in set(query)
    }
    scores = []
    for piece, count in zip(pieces, counts, strict=True):
        flat = FLATTEN * (1 - BY_LENGTH + BY_LENGTH * len(piece) / mean)
        scores.append(
            sum(
                weight * count[token] * (FLATTEN + 1) / (count[token] + flat)
                for token, weight in rarity.items()
                if token in count
            )
        )
    return scores
