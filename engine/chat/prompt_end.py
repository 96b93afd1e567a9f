"""Token healing: a prompt may end where the whole text has no border between two tokens.

A tokenizer cuts a prompt at its end, and the model has never seen a text that goes on from there: "http:" ends with the
token ":", but a text with "http://" holds the token "://". So the last tokens of the prompt are taken back, down to a
border that no token could cross, and the text begins with the bytes that they spell.

The law is the target's own, conditioned on the text beginning with these bytes: at the prompt's end, the byte law of
Phan et al., Exact Byte-Level Probabilities from Tokenized Language Models (2025). A token that spells all bytes taken
back may come. A token that spells only the first of them may come, too, weighted by the probability that the other
bytes follow. To compute this probability, the target runs one pass over a tree that holds the possible tokenizations of
the bytes taken back. A path is a sequence of tokens in this tree, from the root downwards.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from torch import Tensor

from engine.chat.turns import ChatPrompt, split
from engine.core.constraint import Constraint
from engine.core.detokenizer import detokenizer
from engine.core.tree import ROOT, DraftTree
from engine.errors import UserError

MOST_BYTES = 32  # the most bytes that are taken back
BEFORE = 64  # characters before them that the tokenizer reads as well
OVER = -1  # the path once all bytes are spelled

Path = tuple[int, ...]


class Spelled:
    """The bytes that each token of a vocabulary spells inside a text."""

    def __init__(self, tokenizer, count: int) -> None:
        words = detokenizer(tokenizer)
        special = {*tokenizer.all_special_ids, *tokenizer.added_tokens_decoder}
        self._of = [b"" if token in special else words.spelled(token) for token in range(count)]
        pairs = sorted((text, token) for token, text in enumerate(self._of) if text)
        self._texts = [text for text, _ in pairs]
        self._tokens = [token for _, token in pairs]

    def of(self, token: int) -> bytes:
        """The bytes of a token; b"" for special tokens."""
        return self._of[token] if token < len(self._of) else b""

    def beginning_with(self, part: bytes) -> list[int]:
        """The tokens whose bytes begin with the bytes ``part``."""
        return self._tokens[self._range(part)]

    def cross(self, text: bytes, border: int) -> bool:
        """Whether a token could lie across the position ``border`` of the text. The token's bytes must agree with the
        text's bytes, but they may reach beyond the text's end."""
        return any(
            len(token) > border - start and (rest.startswith(token) or token.startswith(rest))
            for start, rest in ((start, text[start:]) for start in range(border))
            for token in self._texts[self._range(text[start:border])]
        )

    def _range(self, part: bytes) -> slice:
        def begin(text: bytes) -> bytes:
            return text[: len(part)]

        first = bisect_left(self._texts, part, key=begin)
        return slice(first, bisect_right(self._texts, part, lo=first, key=begin))


@lru_cache(maxsize=2)
def spelled(tokenizer, count: int) -> Spelled:
    return Spelled(tokenizer, count)


@dataclass(frozen=True)
class TakenBack:
    """The end of a prompt. text: the characters taken back; "" if no token could lie across the prompt's end. paths:
    tokenizations of prefixes of ``text``, each a sequence of tokens."""

    text: str
    paths: tuple[Path, ...]


def taken_back(target, prompt: ChatPrompt) -> tuple[ChatPrompt, TakenBack]:
    """Split the prompt in two: the prompt without the tokens that are taken back, which keeps at least one token, and
    the part that is taken back.

    Raises UserError for a target without a tokenizer.
    """
    if target.tokenizer is None:
        raise UserError(f"{target.name} has no tokenizer, so a prompt's end cannot be healed.")
    words = spelled(target.tokenizer, min(target.vocab_size, len(target.tokenizer)))
    count = _count(words, prompt)
    if not count:
        return prompt, TakenBack("", ())
    kept, last = prompt.tokens[:-count], prompt.tokens[-count:]
    text = b"".join(map(words.of, last)).decode()
    short = replace(prompt, text=prompt.text.removesuffix(text), tokens=kept)
    return short, TakenBack(text, (*_paths(target, words, short.text, text), (*last[:-1],)))


def _count(words: Spelled, prompt: ChatPrompt) -> int:
    """The number of last tokens to take back: down to the nearest border that no token could cross. No character is
    split."""
    tail, starts = b"", []
    for token in reversed(prompt.tokens[1:]):
        piece = words.of(token)
        if not piece or len(tail) + len(piece) > MOST_BYTES:
            break
        tail = piece + tail
        starts.append(len(tail))  # each counted in bytes from the end
    if not tail or not words.cross(tail, len(tail)):
        return 0
    whole = [
        count
        for count, size in enumerate(starts, start=1)
        if prompt.text.encode().endswith(tail[-size:]) and _is_text(tail[-size:])
    ]
    sure = [count for count in whole if not words.cross(tail, len(tail) - starts[count - 1])]
    return sure[0] if sure else max(whole, default=0)


def _is_text(part: bytes) -> bool:
    try:
        part.decode()
    except UnicodeDecodeError:
        return False
    return True


def _paths(target, words: Spelled, before: str, text: str) -> Iterator[Path]:
    """Yields the path of each prefix of ``text`` that is shorter than ``text``: the tokens by which the tokenizer
    spells the prefix after ``before``. A prefix is left out if one of its tokens would begin in ``before``. before: the
    prompt's text before ``text``."""
    for size in range(1, len(text)):
        rest, path = text[:size].encode(), ()
        tokens = split(
            target, before[-BEFORE:] + text[:size], "The prompt", add_special_tokens=False
        )
        while rest and tokens and (piece := words.of(tokens[-1])) and rest.endswith(piece):
            rest, path = rest.removesuffix(piece), (tokens.pop(), *path)
        if not rest:
            yield path


class PromptEnd(Constraint):
    """The constraint on one text, which must begin with the characters that were taken back from the prompt."""

    looks_ahead = True

    def __init__(self, target, end: TakenBack, temperature: float) -> None:
        """temperature: the temperature of the sampling. At temperature 0, the weights are the probabilities at
        temperature 1."""
        self._words = spelled(target.tokenizer, min(target.vocab_size, len(target.tokenizer)))
        self._vocabulary, self._temperature = target.vocab_size, temperature or 1.0
        self._text, self._path = end.text.encode(), ()
        self.committed, self.key = 0, ("heal", end.text)
        paths = {path[:size] for path in end.paths for size in range(len(path) + 1)}
        self._below: dict[Path, list[int]] = {path: [] for path in sorted(paths)}
        for path in self._below:
            if path:
                self._below[path[:-1]].append(path[-1])
        self._chances: dict[
            Path, float
        ] = {}  # log-probabilities that the bytes after the path follow

    def begin(self, read: Callable[[DraftTree], Tensor]) -> None:
        tree, place_of = DraftTree(), {(): ROOT}
        for path in filter(None, self._below):
            place_of[path] = tree.draw(place_of[path[:-1]], path[-1])
        rows = (read(tree).float() / self._temperature).log_softmax(-1).double().cpu()
        for path in sorted(self._below, key=len, reverse=True):
            law = rows[place_of[path] + 1]
            ways = [float(law[self._whole(path)].logsumexp(-1))]
            ways += [float(law[token]) + self._chances[*path, token] for token in self._below[path]]
            self._chances[path] = float(torch.tensor(ways).logsumexp(-1))

    def _whole(self, path: Path) -> list[int]:
        """The tokens that spell all of the bytes taken back that the path does not spell, and perhaps further bytes."""
        return self._words.beginning_with(self._text[len(b"".join(map(self._words.of, path))) :])

    def allowed(self, continuation: Sequence[int]) -> Tensor | None:
        path = (*self._path, *continuation)
        if path not in self._below:
            return None
        mask = torch.zeros(self._vocabulary, dtype=torch.bool)
        mask[self._whole(path)] = True
        mask[list(self._parts(path))] = True
        return mask

    def weighed(self, logits: Tensor, continuation: Sequence[int]) -> Tensor:
        path = (*self._path, *continuation)
        parts = self._parts(path)
        if parts:
            logits = logits.clone()
            for token, chance in parts.items():
                logits[token] += self._temperature * chance
        return logits

    def _parts(self, path: Path) -> dict[int, float]:
        """The tokens that spell the next of the bytes taken back after the path, but not all of them. Each has the
        log-probability that the remaining bytes follow it."""
        chances = {token: self._chances[*path, token] for token in self._below.get(path, ())}
        return {token: chance for token, chance in chances.items() if chance > float("-inf")}

    def commit(self, tokens: Sequence[int]) -> None:
        self.committed += len(tokens)
        path = (*self._path, *tokens)
        self._path = path if path in self._below else (OVER,)
