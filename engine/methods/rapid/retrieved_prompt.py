"""A short prompt made of those pieces of a long one that are most relevant to its end.

Pieces are scored by Okapi BM25 (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009) over token
ids: by how many of the end's rarer tokens a piece holds. No model of meaning is involved: a piece is found if
the end repeats its names, numbers or words, but not if the end says the same in other words.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

FLATTEN = 1.2  # k1: how soon repetitions of a token in a piece stop adding to the score
BY_LENGTH = 0.75  # b: how strongly long pieces are penalised for their length


@dataclass(frozen=True)
class Piece:
    """Tokens ``start`` to ``end`` of the prompt, and how relevant they are to the prompt's end."""

    start: int
    end: int
    score: float
    kept: bool

    def __len__(self) -> int:
        return self.end - self.start


@dataclass(frozen=True)
class ShortPrompt:
    """tokens: those of the kept pieces, in the order of the prompt, then those of its end. pieces: all."""

    tokens: Sequence[int]
    pieces: Sequence[Piece]


def shortened(prompt: Sequence[int], ending: int, piece: int, most: int) -> ShortPrompt:
    """Keep the last ``ending`` tokens and, before them, the best pieces of ``piece`` tokens each, up to
    ``most`` tokens of pieces. The first token is also kept, because models attend to it strongly. A prompt that
    is no longer than all this stays whole."""
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
    kept = [prompt[piece.start : piece.end] for piece in pieces if piece.kept]
    tokens = [prompt[0], *(token for passage in kept for token in passage), *prompt[cut:]]
    return ShortPrompt(tokens, pieces)


def bm25(pieces: Sequence[Sequence[int]], query: Sequence[int]) -> list[float]:
    """One score per piece: the sum over the query's distinct tokens."""
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
