"""A JSON schema as a constraint: every text is a document of the schema.

The grammar engine is llguidance. Wherever the schema leaves only one token (braces, keys, colons), that token is
forced, and a forced token costs no draft.
"""

import weakref
from collections.abc import Collection, Sequence
from copy import copy
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from engine.chat.grammar import GrammarText, GrammarTokenizer, Next, Refused, TooMuch
from engine.chat.schema_check import checked
from engine.chat.schema_patterns import ANY_BUT_LINE_ENDS, unusable
from engine.core.constraint import Constraint, DeadEnds
from engine.errors import UserError
from engine.printable import one_line

TOO_MUCH = (
    "The JSON schema is too complex: its grammar takes more than {0.making:g} seconds or {0.megabytes} MB, or the "
    "tokens that may come next cannot be told in time."
)


class JsonSchema(Constraint):
    """The constraint on one text. The document is written on one line, as ``json.dumps`` writes it, and the text ends
    after the document."""

    def __init__(self, schema: str, tokenizer, vocabulary: int, ends: Collection[int]) -> None:
        """Check the schema and compile its grammar. tokenizer: a fast transformers tokenizer. vocabulary: width of the
        target's logits. ends: the tokens that end a text of the target. One of them is forced after the document: the
        tokenizer's own end token if it is among them.

        Raises UserError for a text that is not a JSON schema, for a schema with a keyword that cannot be kept, for a
        schema none of whose documents can begin with a token of the vocabulary, for a tokenizer that grammars cannot
        use, and if no token ends a text.
        """
        content = checked(schema)
        self._vocabulary = vocabulary
        self._text = GrammarText(
            _grammar_tokenizer(tokenizer, vocabulary, frozenset(ends)),
            content.text,
            content.escapes,
        )
        weakref.finalize(self, self._text.close).atexit = False
        self.committed = 0
        self.key = ("json_schema", content.text, content.escapes)
        self._masks: dict[tuple[int, ...], Tensor | None] = {}
        self._dead = DeadEnds()
        try:
            self._masks[()] = self._mask(self._after(()))
        except Refused as refusal:
            raise _refusal(refusal) from None

    def allowed(self, continuation: Sequence[int]) -> Tensor | None:
        """See ``Constraint``. After the end of the text, and after tokens that the schema does not allow, the mask is
        None: every token may follow, because no token after such a continuation is ever committed."""
        path = tuple(continuation)
        if path not in self._masks:
            self._look(path, 0)
        return self._masks.get(path)

    def allows(self, continuation: Sequence[int], token: int) -> bool:
        """Whether this token may follow. The grammar tests it alone, unless the mask has been computed already."""
        path = tuple(continuation)
        if path in self._masks:
            return super().allows(path, token)
        try:
            return self._after(path, test=token).mask in (None, b"\1")
        except Refused:
            return False

    def dead(self, continuation: Sequence[int]) -> bool:
        return tuple(continuation) in self._dead

    def forced(self, continuation: Sequence[int], most: int) -> list[int]:
        return self._look(tuple(continuation), most)

    def _look(self, path: tuple[int, ...], most: int) -> list[int]:
        """Fetch and store the masks after a path and after each of the forced tokens that follow it. Returns these
        forced tokens."""
        try:
            forced, mask = answer = self._after(path, most)
        except Refused as refusal:
            self._masks[path] = None
            self._dead.add(path, _at_a_place(refusal))
            return []
        for token in forced:
            self._masks[path] = self._only(token)
            path = (*path, token)
        if mask != b"":
            self._masks[path] = self._mask(answer)
        return forced

    def _after(self, path: tuple[int, ...], most: int = 0, test: int | None = None) -> Next:
        try:
            return self._text.after(path, most, test)
        except TooMuch:
            raise UserError(TOO_MUCH.format(self._text.tokenizer.bounds)) from None

    def commit(self, tokens: Sequence[int]) -> None:
        self._dead.commit(tokens)
        self.committed += len(tokens)
        self._text.commit(tokens)
        self._masks.clear()

    def _only(self, token: int) -> Tensor:
        mask = torch.zeros(self._vocabulary, dtype=torch.bool)
        mask[token] = True
        return mask

    def _mask(self, after: Next) -> Tensor | None:
        """The mask in the grammar's answer as bool [V]; None if every token may come."""
        if after.mask is None:
            return None
        bits = np.frombuffer(after.mask, dtype=np.uint8)
        mask = np.unpackbits(bits, count=self._vocabulary, bitorder="little")
        return torch.from_numpy(mask.view(np.bool_))


@lru_cache(maxsize=4)
def _grammar_tokenizer(tokenizer, vocabulary: int, ends: frozenset[int]) -> GrammarTokenizer:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise UserError("A JSON schema needs a target with a fast tokenizer; this one is slow.")
    backend = copy(backend)
    backend.no_padding()
    backend.no_truncation()
    size = backend.get_vocab_size(with_added_tokens=True)
    usable = {end for end in ends if end < min(vocabulary, size)}
    if not usable:
        raise UserError("A JSON schema needs a target with an end-of-text token.")
    own = tokenizer.eos_token_id
    end = own if own in usable else min(usable)
    return GrammarTokenizer(backend.to_str(), max(vocabulary, size), vocabulary, end)


def _at_a_place(refusal: Refused) -> str:
    """A sentence on why a text cannot go on."""
    if "NoExtension" in str(refusal):
        return "The JSON schema came to a dead end: no token of this vocabulary may come next."
    return f"The grammar of the JSON schema gave up here: {one_line(_reason(refusal), 300)}."


def _refusal(refusal: Refused) -> UserError:
    """The error for a grammar that cannot be made."""
    message = str(refusal)
    if "NoExtension" in message:
        return UserError("No token of this vocabulary can begin a document of this JSON schema.")
    if "decoder" in message:
        return UserError(
            "A JSON schema cannot be used with this target: the bytes of its tokens cannot be told, because the "
            "decoder of its tokenizer is neither byte-level nor SentencePiece (it may be WordPiece, or missing)."
        )
    return unusable(_reason(refusal))


def _reason(refusal: Refused) -> str:
    """The grammar engine's reason, as the end of a sentence. If a pattern is wrong, the second line of the refusal
    holds the pattern, and the last line the error."""
    lines = [line.strip() for line in str(refusal).split("<state>")[0].splitlines() if line.strip()]
    wrong = next((line for line in lines if line.startswith("error: ")), None)
    if wrong is None or len(lines) < 2:
        return lines[0].rstrip(".") if lines else "it gave no reason"
    shown = lines[1].replace(ANY_BUT_LINE_ENDS, ".")[:100]
    return f"in the pattern {shown}, {wrong.removeprefix('error: ')}"
