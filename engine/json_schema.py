"""A JSON schema as a constraint: every text is a document of the schema.

The grammar engine is llguidance. Wherever the schema leaves only one token (braces, keys, colons),
that token is forced, and a forced token costs no draft.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from functools import lru_cache

import torch
from torch import Tensor

from engine.constraint import Constraint
from engine.errors import UserError

MOST_CHARACTERS = 20_000  # of a schema
_LAYOUT = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}


@lru_cache(maxsize=4)
def _grammar_tokenizer(tokenizer, vocabulary: int):
    import llguidance.hf

    return llguidance.hf.from_tokenizer(tokenizer, n_vocab=vocabulary)


class JsonSchema(Constraint):
    """One instance holds the state of one text. A document is written on one line, as ``json.dumps``
    writes it, and the text ends after it."""

    def __init__(self, schema: str, tokenizer, vocabulary: int, ends: Collection[int]) -> None:
        """tokenizer: a fast tokenizer of transformers. vocabulary: width of the target's logits. ends:
        the tokens that end a text.

        Raises UserError for a text that is not a JSON schema, for a schema that the grammar engine
        refuses, for one that no token of the vocabulary can begin, and if no token ends a text.
        """
        from llguidance import LLMatcher

        if not ends:
            raise UserError("A JSON schema needs a target with an end-of-text token.")
        self._vocabulary, self._end = vocabulary, min(ends)
        self._matcher = LLMatcher(_tokenizer_of(tokenizer, vocabulary), _grammar(schema))
        if self._matcher.is_error():
            raise UserError(f"The JSON schema cannot be used: {_first_line(self._matcher)}")
        self.committed, self._ended = 0, False
        if not self._mask().any():
            raise UserError("No token of this vocabulary can begin a document of this JSON schema.")

    def allowed(self, continuation: Sequence[int]) -> Tensor | None:
        """See ``Constraint``. After the end of the text, and after tokens that the schema does not
        allow, every token may follow, because nothing there is ever kept."""
        taken = self._matcher.try_consume_tokens(list(continuation))
        rest = continuation[taken:]
        found = None
        if not rest and not self._ended:
            found = self._mask()
        self._matcher.rollback(taken)
        return found

    def forced(self, continuation: Sequence[int], most: int) -> list[int]:
        found: list[int] = []
        while len(found) < most:
            mask = self.allowed((*continuation, *found))
            if mask is None or int(mask.sum()) != 1:
                break
            found.append(int(mask.nonzero()))
        return found

    def commit(self, tokens: Sequence[int]) -> None:
        self.committed += len(tokens)
        taken = self._matcher.try_consume_tokens(list(tokens))
        self._ended = taken < len(tokens)

    def _mask(self) -> Tensor:
        """bool [V]: the tokens allowed next; after a complete document only the end of the text."""
        if self._matcher.is_stopped():
            mask = torch.zeros(self._vocabulary, dtype=torch.bool)
            mask[self._end] = True
            return mask
        bias = bytearray(self._matcher.compute_logit_bias())
        return torch.frombuffer(bias, dtype=torch.uint8).bool()


def _tokenizer_of(tokenizer, vocabulary: int):
    try:
        return _grammar_tokenizer(tokenizer, vocabulary)
    except (ValueError, AttributeError, RuntimeError):
        raise UserError("A JSON schema needs a target with a fast tokenizer.") from None


def _grammar(schema: str) -> str:
    from llguidance import LLMatcher

    if len(schema) > MOST_CHARACTERS:
        raise UserError(f"A JSON schema may have at most {MOST_CHARACTERS:,} characters.")
    try:
        content = json.loads(schema)
    except (ValueError, RecursionError):
        raise UserError("The JSON schema is not valid JSON.") from None
    if not isinstance(content, dict):
        raise UserError("A JSON schema is an object in braces.")
    return LLMatcher.grammar_from_json_schema(content, defaults=_LAYOUT)


def _first_line(matcher) -> str:
    line = (matcher.get_error() or "").strip().splitlines()[0][:200]
    return line if line.endswith(".") else f"{line}."
