"""How the tokens of one vocabulary are written with those of another, for byte-level tokenizers.

Both write the same bytes, so each token of the target is a run of the draft's tokens, and a run of one is the same
token in both vocabularies. The draft reads a text as the runs of its tokens, one after the other: every end of a target
token is also an end of a draft token.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from transformers.convert_slow_tokenizer import bytes_to_unicode

from engine.errors import UserError
from engine.model.language_model import LanguageModel

Run = tuple[int, ...]
Letters = tuple[int, ...]
BYTES = 256


@dataclass(frozen=True, eq=False)
class Spelling:
    """runs: [V], by target token; () for one that cannot be written. pieces: texts of the draft's tokens, for
    people. written, drafted: the target's and the draft's tokens as letters, which are the bytes and, from 256 on, the
    special tokens that both have; () for another special token. letters: how many letters there are.
    """

    runs: tuple[Run, ...]
    pieces: tuple[str, ...]
    written: tuple[Letters, ...] = ()
    drafted: tuple[Letters, ...] = ()
    letters: int = 0

    def spelled(self, tokens: Iterable[int]) -> list[int]:
        """The target's tokens as the draft's; token 0 in place of one that cannot be written."""
        return [part for token in tokens for part in self.runs[token] or (0,)]

    @cached_property
    def same(self) -> dict[int, int]:
        """The draft's token -> the target's, for runs of one."""
        return {run[0]: token for token, run in enumerate(self.runs) if len(run) == 1}

    @cached_property
    def longest(self) -> int:
        return max(map(len, self.runs), default=1)

    @cached_property
    def _firsts(self) -> tuple[Tensor, Tensor]:
        """The target's tokens that can be written [N], and the first token of their runs [N]."""
        known = [(token, run[0]) for token, run in enumerate(self.runs) if run]
        tokens, firsts = zip(*known, strict=True)
        return torch.tensor(tokens), torch.tensor(firsts)

    def first_law(self, p: Tensor, rows: int) -> Tensor:
        """The target's law p [..., V] -> the law [..., rows] of the first draft token in the spelling of the target's
        token."""
        tokens, firsts = (table.to(p.device) for table in self._firsts)
        return p.new_zeros(*p.shape[:-1], rows).index_add_(-1, firsts, p[..., tokens])


@dataclass(frozen=True, eq=False)
class ForeignDraft:
    """A draft model with a vocabulary of its own, and how the target's tokens are written in it."""

    model: LanguageModel
    spelling: Spelling


def spelling_of(target, draft, rows: tuple[int, int], names: tuple[str, str]) -> Spelling:
    """target, draft: tokenizers. rows: of the heads of both models. names: of the models, for messages.

    Raises UserError if one of the tokenizers is not byte-level, or if the draft's cannot write all bytes or writes with
    a token that its model lacks."""
    for tokenizer, name in zip((target, draft), names, strict=True):
        if not _byte_level(tokenizer):
            raise UserError(
                f"The tokenizer of {name} is not a byte-level one; runs of tokens can be translated between such only."
            )
    special = set(_specials(target).values())
    own = draft.get_vocab()
    runs: list[Run] = [()] * rows[0]
    for piece, token in target.get_vocab().items():
        if token >= rows[0]:
            continue
        if token in special:
            written = (
                [own[piece]] if piece in own else draft(piece, add_special_tokens=False).input_ids
            )
        else:
            written = [part.id for part in draft.backend_tokenizer.model.tokenize(piece)]
            if "".join(draft.convert_ids_to_tokens(written)) != piece:
                raise UserError(f"The tokens of {names[1]} cannot write all that {names[0]} can.")
        runs[token] = tuple(written)
    if max((part for run in runs for part in run), default=0) >= rows[1]:
        raise UserError(f"The tokenizer of {names[1]} has tokens that its model has not.")
    pieces = [draft.decode([token]) for token in range(len(draft))]
    shared = sorted(_specials(target).keys() & _specials(draft).keys())
    letters = [_letters(*pair, shared) for pair in zip((target, draft), rows, strict=True)]
    return Spelling(tuple(runs), tuple(pieces), *letters, BYTES + len(shared))


def _specials(tokenizer) -> dict[str, int]:
    """The special tokens by their text."""
    special = {*tokenizer.all_special_ids, *tokenizer.added_tokens_decoder}
    return {piece: token for piece, token in tokenizer.get_vocab().items() if token in special}


def _letters(tokenizer, rows: int, shared: Sequence[str]) -> tuple[Letters, ...]:
    """[rows], each token's letters. shared: the special tokens that are letters."""
    byte_of = {character: byte for byte, character in bytes_to_unicode().items()}
    special, letters = _specials(tokenizer), [()] * rows
    for piece, token in tokenizer.get_vocab().items():
        if token < rows and piece not in special:
            letters[token] = tuple(byte_of[character] for character in piece)
    for number, piece in enumerate(shared):
        if special[piece] < rows:
            letters[special[piece]] = (BYTES + number,)
    return tuple(letters)


def _byte_level(tokenizer) -> bool:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return False
    state = json.loads(backend.to_str())
    decoder = state.get("decoder") or {}
    kinds = [decoder.get("type"), *(part.get("type") for part in decoder.get("decoders", ()))]
    return "ByteLevel" in kinds and state["model"].get("type") == "BPE"
