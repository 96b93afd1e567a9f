"""Spells each token of the target as a run of the draft model's tokens, for two byte-level tokenizers.

Both tokenizers write the same bytes, so each token of the target can be spelled as a run of draft tokens. If this run
has one token, both vocabularies share the token. The input of the draft model is the run of each target token, one run
after the other. So every end of a target token is also an end of a draft token.
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
    """The spelling of a target's vocabulary in a draft model's vocabulary.

    A letter is a number that stands for a piece of text: 0 to 255 are the bytes, the next numbers are the special
    tokens that both tokenizers have. runs: for each target token, its run of draft tokens; () if it cannot be spelled.
    pieces: for each draft token, its text, for display. written: for each target token, its letters; () for a special
    token that only one tokenizer has. drafted: the same for each draft token. letters: the number of different letters.
    """

    runs: tuple[Run, ...]
    pieces: tuple[str, ...]
    written: tuple[Letters, ...] = ()
    drafted: tuple[Letters, ...] = ()
    letters: int = 0

    def spelled(self, tokens: Iterable[int]) -> list[int]:
        """Return the draft tokens that spell these target tokens. A target token that cannot be spelled becomes draft
        token 0."""
        return [part for token in tokens for part in self.runs[token] or (0,)]

    @cached_property
    def same(self) -> dict[int, int]:
        """Draft token -> target token, for the tokens that both vocabularies share (their run has one token)."""
        return {run[0]: token for token, run in enumerate(self.runs) if len(run) == 1}

    @cached_property
    def longest(self) -> int:
        return max(map(len, self.runs), default=1)

    @cached_property
    def _firsts(self) -> tuple[Tensor, Tensor]:
        """The N target tokens that can be spelled, [N], and for each of them the first draft token of its run, [N]."""
        spelled_tokens = [(token, run[0]) for token, run in enumerate(self.runs) if run]
        tokens, firsts = zip(*spelled_tokens, strict=True)
        return torch.tensor(tokens), torch.tensor(firsts)

    def first_law(self, p: Tensor, rows: int) -> Tensor:
        """Return the distribution of the first draft token of the next target token's run. p: [..., V], the
        distribution of this target token. rows: the size of the draft model's vocabulary. The result is [..., rows]."""
        tokens, firsts = (table.to(p.device) for table in self._firsts)
        return p.new_zeros(*p.shape[:-1], rows).index_add_(-1, firsts, p[..., tokens])


@dataclass(frozen=True, eq=False)
class ForeignDraft:
    """A draft model with another vocabulary, and the spelling of the target's tokens in that vocabulary."""

    model: LanguageModel
    spelling: Spelling


def spelling_of(target, draft, rows: tuple[int, int], names: tuple[str, str]) -> Spelling:
    """Return the spelling of a target's vocabulary in a draft model's vocabulary. target, draft: the two tokenizers.
    rows: the vocabulary sizes of the heads of the target and the draft model. names: the names of the target and the
    draft model, for messages.

    Raises UserError if a tokenizer is not byte-level, if the draft model's tokenizer cannot write a token of the
    target, or if it uses a token that the draft model's head lacks.
    """
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
    """Return text -> token, for the special tokens of a tokenizer."""
    special = {*tokenizer.all_special_ids, *tokenizer.added_tokens_decoder}
    return {piece: token for piece, token in tokenizer.get_vocab().items() if token in special}


def _letters(tokenizer, rows: int, shared: Sequence[str]) -> tuple[Letters, ...]:
    """Return, for each of the first ``rows`` tokens of a tokenizer, its letters (see ``Spelling``). shared: the texts
    of the special tokens that both tokenizers have."""
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
