"""A static analysis as a constraint: where a line of Python uses a name, only names that exist there may come.

Agrawal et al., Monitor-Guided Decoding of Code LMs with Static Analysis of Repository Context (2023). The monitor acts
at trigger points only: at a name after an operator or after a word such as ``return``, outside brackets. Elsewhere
every token may come. The standard library's ``ast`` finds the names that exist in the text so far.
"""

import ast
import builtins
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from engine.core.constraint import Constraint, DeadEnds
from engine.core.detokenizer import detokenizer
from engine.python_text import parsed

ALWAYS = frozenset(dir(builtins)) | {"None", "True", "False", "not", "await", "yield", "lambda"}
USE = re.compile(
    r"(?:(?<![\w.])(?:return|if|elif|while|not|and|or|in|is|yield)[ ]+|[=+\-*/%<>][ ]*)([A-Za-z_]\w*)"
)
"""A pattern that matches a use of a name, with the name as group 1."""
NO_USE = ("def ", "class ", "import ", "from ", "@", "lambda", '"', "'", "#")
"""A line that holds one of these is not analysed."""
LINE_END = re.compile(r"[\n\"'#]")
"""A pattern for the characters that end the analysis of a token: what the token holds after one of them is not
analysed."""
MOST_LINES = 400  # the last lines of the text that are analysed
NONE = "Only names that exist may be used here, and none of them begins as the last name of the text does."


class Names(NamedTuple):
    """The names that may be used at one position of the text. names: the whole names. beginnings: all prefixes of these
    names, the whole names included."""

    names: frozenset[str]
    beginnings: frozenset[str]


class PythonNames(Constraint):
    """The constraint on one text. The prompt and the text are Python; where they cannot be analysed, every token may
    come."""

    key = "python_names"

    def __init__(self, prompt: str, tokenizer, vocabulary: int) -> None:
        """tokenizer: a transformers tokenizer. vocabulary: width of the target's logits."""
        self._text, self._tokens = prompt, _texts(tokenizer, min(vocabulary, len(tokenizer)))
        self._vocabulary = vocabulary
        self._masks: dict[tuple[int, ...], Tensor | None] = {}
        self._dead = DeadEnds()

    def allowed(self, continuation: Sequence[int]) -> Tensor | None:
        """See ``Constraint``. Raises UserError if the text ends within a name that does not exist."""
        path = tuple(continuation)
        if path not in self._masks:
            mask = self._mask(self._behind(path))
            if mask is not None and not bool(mask.any()):
                self._dead.add(path, NONE)
                mask = None
            self._masks[path] = mask
        return self._masks[path]

    def dead(self, continuation: Sequence[int]) -> bool:
        return tuple(continuation) in self._dead

    def allows(self, continuation: Sequence[int], token: int) -> bool:
        """Whether the token may come. Only this token is tested, unless the mask has been computed already."""
        path = tuple(continuation)
        if path in self._masks:
            return super().allows(path, token)
        text = self._behind(path)
        names = names_at(text)
        return names is None or _fits(_line(text), self._token(token), names)

    def commit(self, tokens: Sequence[int]) -> None:
        self._dead.commit(tokens)
        self._text = self._behind(tokens)
        self.committed += len(tokens)
        self._masks.clear()

    def _token(self, token: int) -> str:
        return self._tokens[token] if token < len(self._tokens) else ""

    def _behind(self, path: Sequence[int]) -> str:
        return self._text + "".join(map(self._token, path))

    def _mask(self, text: str) -> Tensor | None:
        line, names = _line(text), names_at(text)
        if names is None:
            return None
        mask = torch.zeros(self._vocabulary, dtype=torch.bool)
        mask[: len(self._tokens)] = torch.tensor(
            [_fits(line, token, names) for token in self._tokens]
        )
        return None if bool(mask[: len(self._tokens)].all()) else mask


def names_at(text: str) -> Names | None:
    """The names that exist at the end of the text; None where the analysis says nothing."""
    lines = text.split("\n")[-MOST_LINES:]
    line = lines[-1]
    if any(word in line for word in NO_USE) or line.count("(") + line.count("[") + line.count(
        "{"
    ) > (line.count(")") + line.count("]") + line.count("}")):
        return None
    return _known("\n".join(lines[:-1]), len(line) - len(line.lstrip()))


@lru_cache(maxsize=64)
def _known(before: str, indent: int) -> Names | None:
    """The names bound in the whole lines ``before``, as visible from a line of this indent."""
    tree = parsed(f"{before}\n{' ' * indent}pass")
    if tree is None:
        return None
    names = set(ALWAYS)
    for statement in tree.body:
        inner = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if inner:
            names.add(statement.name)
        if not inner or (indent and statement is tree.body[-1]):
            names |= set(_bound(statement))
    beginnings = {name[:length] for name in names for length in range(1, len(name) + 1)}
    return Names(frozenset(names), frozenset(beginnings))


def _bound(statement: ast.AST) -> Iterator[str]:
    for node in ast.walk(statement):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.alias(name=name, asname=asname):
                yield asname or name.partition(".")[0]
            case ast.ExceptHandler(name=str(name)):
                yield name


def _line(text: str) -> str:
    return text.rpartition("\n")[2]


def _fits(line: str, token: str, known: Names) -> bool:
    """Whether every name that the token begins, continues or ends is allowed at this position."""
    first, ended, _ = LINE_END.sub("\n", token).partition("\n")
    whole = line + first
    for use in USE.finditer(whole):
        name, end = use[1], use.end()
        if end < len(line) or _in_brackets(whole[: use.start(1)]):
            continue
        if end < len(whole) or ended:
            if end >= len(line) and name not in known.names:
                return False
        elif name not in known.beginnings:
            return False
    return True


def _in_brackets(text: str) -> bool:
    return sum(map(text.count, "([{")) > sum(map(text.count, ")]}"))


@lru_cache(maxsize=2)
def _texts(tokenizer, count: int) -> tuple[str, ...]:
    """The text of every token as it looks inside a text."""
    face = detokenizer(tokenizer).face
    return tuple(face(token) for token in range(count))
