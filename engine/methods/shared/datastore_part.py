"""Datastores: the tokens of a user's text, in which a drafter looks up continuations.

A folder holds ``config.json`` and ``tokens.npy``, one array of token ids. When the folder is opened, the suffix array
is computed: all positions of the text, sorted by the tokens from each position on. This takes a second for millions of
tokens. ``make_datastore`` writes a folder from a text.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.lib.format import open_memmap
from pydivsufsort import divsufsort
from transformers import AutoTokenizer

from engine.errors import UserError
from engine.model.language_model import LanguageModel
from engine.parts.files import json_object
from engine.parts.kinds import PartKind
from engine.parts.shelf import Shelf
from engine.text_file import text_of

MOST_TOKENS = 4_000_000
"""The most tokens of one datastore: 48 MB with its suffix array."""

TOKENS, CONFIG = "tokens.npy", "config.json"
KIND_OF_FILE = "datastore"
SHOWN_PLACES = 64  # the most occurrences of a match whose continuations are read


class Found(NamedTuple):
    """A match: all occurrences of a run of tokens in the datastore. first, last: the range of these occurrences in the
    suffix array, ``last`` excluded. length: the number of tokens in the run."""

    first: int
    last: int
    length: int


class Datastore:
    """The tokens of a text and their suffix array. A lookup takes one binary search for each token of the run, so its
    cost grows with the logarithm of the text's length."""

    def __init__(self, tokens: np.ndarray) -> None:
        self.tokens = np.ascontiguousarray(tokens, dtype=np.int32)
        self._order = (
            divsufsort(self.tokens.astype(np.uint32)).astype(np.int32)
            if len(self.tokens)
            else np.zeros(0, np.int32)
        )

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def nbytes(self) -> int:
        return self.tokens.nbytes + self._order.nbytes

    def find(self, run: Sequence[int]) -> Found | None:
        """Return the match of this run of tokens; None if the run does not occur in the datastore."""
        first, last = 0, len(self.tokens)
        for depth, token in enumerate(run):
            bounds = (
                token,
                token + 1,
            )  # the range of suffixes, among those that match so far, with this token at this depth
            first, last = (self._bound(first, last, depth, bound) for bound in bounds)
            if first == last:
                return None
        return Found(first, last, len(run)) if first < last else None

    def longest(self, context: Sequence[int], most: int, least: int = 1) -> Found | None:
        """Return the match of the longest suffix of the context that occurs in the datastore; None if no suffix of
        ``least`` to ``most`` tokens occurs. The length is found by bisection, because all suffixes of a run that occurs
        also occur."""
        low, high, best = least, min(most, len(context)), None
        while low <= high:
            length = (low + high) // 2
            match = self.find(context[len(context) - length :])
            if match is None:
                high = length - 1
            else:
                best, low = match, length + 1
        return best

    def continuations(self, found: Found, length: int) -> Iterator[list[int]]:
        """Yield the tokens that follow the match, at most ``length``, for some occurrences that are evenly spread over
        all occurrences."""
        step = -(-(found.last - found.first) // SHOWN_PLACES)
        for place in range(found.first, found.last, step):
            start = int(self._order[place]) + found.length
            yield self.tokens[start : start + length].tolist()

    def _bound(self, first: int, last: int, depth: int, token: int) -> int:
        """Return the first index from ``first`` to ``last`` in the suffix array at which the suffix has a token >=
        ``token`` at position ``depth``. The end of the text counts as smaller than every token."""
        while first < last:
            middle = (first + last) // 2
            place = int(self._order[middle]) + depth
            if place >= len(self.tokens) or self.tokens[place] < token:
                first = middle + 1
            else:
                last = middle
        return first


def tokenizer_digest(tokenizer, tokens: np.ndarray) -> str:
    """Return a digest of sixteen hexadecimal digits, computed from the distinct ids in ``tokens`` and from the strings
    to which the tokenizer maps these ids. A larger tokenizer that maps these ids to the same strings has the same
    digest."""
    used = np.unique(tokens).tolist()
    meant = tokenizer.convert_ids_to_tokens(used)
    return hashlib.sha256(json.dumps([used, meant]).encode()).hexdigest()[:16]


def write_datastore(folder: str | Path, tokens: Sequence[int], tokenizer) -> None:
    """Write the tokens and a config to a folder. Raises UserError if there are no tokens, or too many."""
    if not tokens:
        raise UserError("The text for the datastore is empty.")
    _refuse_large(len(tokens))
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    kind = np.uint16 if max(tokens) < 2**16 else np.uint32
    saved = np.asarray(tokens, dtype=kind)
    np.save(folder / TOKENS, saved, allow_pickle=False)
    digest = tokenizer_digest(tokenizer, saved)
    config = {"kind": KIND_OF_FILE, "tokens": len(tokens), "tokenizer": digest}
    (folder / CONFIG).write_text(json.dumps(config, indent=1) + "\n", "utf-8")


def _refuse_large(count: int) -> None:
    if count > MOST_TOKENS:
        raise UserError(
            f"The text has {count:,} tokens; a datastore holds at most {MOST_TOKENS:,}."
        )


def _open(path: str) -> tuple[Datastore, str]:
    """Return the datastore in a folder, and the tokenizer digest that the folder's config names. Raises UserError if
    there is no datastore."""
    name = Path(path).name
    try:
        config = json_object(Path(path) / CONFIG)
        if config.get("kind") != KIND_OF_FILE:
            raise ValueError
        with np.errstate(over="raise"):
            tokens = open_memmap(
                Path(path) / TOKENS, mode="r"
            )  # reads the header, and takes no zip
        if tokens.ndim != 1 or tokens.dtype not in (np.uint16, np.uint32) or not len(tokens):
            raise ValueError
    except (OSError, ValueError, EOFError, ArithmeticError, MemoryError, RecursionError):
        raise UserError(f"There is no datastore to open at {name}.") from None
    _refuse_large(len(tokens))
    if int(tokens.max()) >= 2**31:
        raise UserError(f"There is no datastore to open at {name}.")
    return Datastore(np.asarray(tokens)), str(config.get("tokenizer"))


open_datastore: Shelf[tuple[Datastore, str]] = Shelf(_open, 4)


def _load(path: str, target: LanguageModel, dtype, device: str) -> Datastore:
    datastore, made_with = open_datastore(path)
    if made_with != _digest(target.tokenizer, datastore):
        raise UserError(
            f"The datastore {Path(path).name} was made with another tokenizer than that of {target.name}."
        )
    largest = int(datastore.tokens.max())
    if largest >= target.vocab_size:
        raise UserError(
            f"The datastore {Path(path).name} holds the token {largest}, which {target.name} cannot write."
        )
    return datastore


def _digest(tokenizer, datastore: Datastore) -> str | None:
    """Return ``tokenizer_digest`` for the datastore's tokens; None if the tokenizer has no token for one of the ids."""
    if int(datastore.tokens.max()) >= len(tokenizer):
        return None
    return tokenizer_digest(tokenizer, datastore.tokens)


def tiny_datastore(vocabulary: int) -> Datastore:
    """Return a datastore of 400 random tokens with at most 12 different ids, so that short runs recur."""
    rng = np.random.default_rng(2)
    return Datastore(rng.integers(0, min(vocabulary, 12), 400))


KIND = PartKind(
    "datastore", "datastore", _load, lambda target, opener: tiny_datastore(target.vocab_size)
)


MOST_BYTES = 16 * MOST_TOKENS
"""The most bytes of a text file. A larger file is refused without opening it, because it would have too many tokens."""

AT_ONCE = 1 << 20  # characters that are tokenized in one call, and the rest of the last line


def make_datastore(text: Path, folder: Path, target: str) -> int:
    """Tokenize a UTF-8 text with the tokenizer of ``target``, write the datastore to a folder, and return the number of
    tokens.

    Raises UserError if the file is not a text, is empty or too large, if there is no such tokenizer, or if the folder
    cannot be written.
    """
    content = _read(text)
    try:
        tokenizer = AutoTokenizer.from_pretrained(target, trust_remote_code=False)
    except Exception as error:  # transformers raises many kinds for one cause
        raise UserError(f"There is no tokenizer to open at {target}.") from error
    tokens: list[int] = []
    for piece in _pieces(content):
        tokens += tokenizer(piece, add_special_tokens=False, verbose=False)["input_ids"]
        if len(tokens) > MOST_TOKENS:
            break
    try:
        write_datastore(folder, tokens, tokenizer)
    except OSError as error:
        raise UserError(f"{folder.name} cannot be written: {error.strerror}.") from None
    return len(tokens)


def _read(text: Path) -> str:
    if text.is_file() and text.stat().st_size > MOST_BYTES:
        raise UserError(
            f"{text.name} has more than {MOST_BYTES / 1e6:,.0f} MB; a datastore holds at most "
            f"{MOST_TOKENS:,} tokens."
        )
    content = text_of(text)
    if "\0" in content:
        raise UserError(f"{text.name} is not a text: it holds null characters.")
    if not content.strip():
        raise UserError(f"{text.name} is empty.")
    return content


def _pieces(content: str) -> Iterator[str]:
    start = 0
    while start < len(content):
        end = content.find("\n", start + AT_ONCE) + 1 or len(content)
        yield content[start:end]
        start = end
