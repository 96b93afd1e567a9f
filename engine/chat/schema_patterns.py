"""Translates patterns of JSON Schema, which are JavaScript's, for a grammar engine whose patterns are Rust's."""

import re

from engine.errors import UserError
from engine.printable import one_line

ANY_BUT_LINE_ENDS = r"[^\n\r\x{2028}\x{2029}]"
PIECES = re.compile(r"\\[\s\S]|\[\^?\]?(?:\\[\s\S]|[^\]\\])*\]|[\s\S]")
"""A piece of a pattern: an escape, a class, or one character."""
RUST_ONLY = re.compile(r"\(\?(P[<=>]|[a-zA-Z-]+[:)])")
RUST_ESCAPES = (r"\A", r"\Z", r"\z")
SET_OPERATORS = re.compile(r"&&|--|~~|^\[\^?\]")

_SHORT = r"(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
_FEBRUARY = r"02-(0[1-9]|1[0-9]|2[0-8])"
_LEAP = r"[0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00"
_DAY = rf"([0-9]{{4}}-({_SHORT}|{_FEBRUARY})|({_LEAP})-02-29)"
_ZONE = r"([zZ]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
DATE = f"^{_DAY}$"
DATE_TIME = rf"^{_DAY}[tT]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?{_ZONE}$"
"""Patterns of the formats date and date-time. They replace the grammar engine's own patterns, which allow 29 February
in every year."""


def pattern(source: str) -> str:
    """The pattern in the syntax of the grammar engine. Raises UserError for a pattern that would have another meaning
    in the grammar engine."""
    pieces = PIECES.findall(source)
    flag = RUST_ONLY.search("".join(piece if len(piece) == 1 else "\0" for piece in pieces))
    if flag is not None:
        raise _refusal(source, f"{flag.group()} is no part of JSON Schema's patterns")
    return "".join(_piece(source, piece) for piece in pieces)


def _piece(source: str, piece: str) -> str:
    if piece in RUST_ESCAPES:
        raise _refusal(source, f"{piece} is no part of JSON Schema's patterns")
    if piece[0] != "[" or len(piece) == 1:
        return ANY_BUT_LINE_ENDS if piece == "." else piece
    if SET_OPERATORS.search(piece):
        raise _refusal(source, f"the class {piece[:40]} can be read in more than one way")
    inside = re.sub(r"(\\[\s\S])|\[", lambda match: match.group(1) or r"\[", piece[1:])
    return f"[{inside}"


def _refusal(source: str, why: str) -> UserError:
    return unusable(f"in the pattern {one_line(source, 100)}, {why}")


def unusable(why: str) -> UserError:
    """The error for a schema. why: the end of its sentence, which may hold a stranger's words."""
    return UserError(f"The JSON schema cannot be used: {one_line(why.rstrip('.'), 400)}.")


CONTROLS = re.compile("[\x00-\x07\x0b\x0e-\x1f\x7f]")
ESCAPED_CONTROLS = re.compile(r"\\x(0|1|7[fF]|\{)|\\u(00[01]|007[fF]|\{)|\\[0av]|\\p\{C|\\c")


def writes_controls(text: str, is_pattern: bool = False) -> bool:
    """Whether the text holds a control character that JSON writes only as \\u and four digits."""
    return bool(CONTROLS.search(text) or (is_pattern and ESCAPED_CONTROLS.search(text)))
