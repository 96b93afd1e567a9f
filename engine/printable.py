"""Makes untrusted text safe for a terminal or a log."""

import unicodedata

KEPT = "\n\t"
_TURNING = {*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C}
"""Characters that change the direction of the text around them."""


def printable(text: str, kept: str = KEPT) -> str:
    """The text with every control character, and every character that changes the direction of writing, shown as its
    code, like ⟨1b⟩. kept: control characters that stay."""
    return "".join(_code(c) if c not in kept and _acts(c) else c for c in text)


def one_line(text: str, most: int = 2000) -> str:
    """The text as ``printable`` shows it, on one line of at most ``most`` characters."""
    whole = printable(" ".join(text.split()), kept="")
    return whole if len(whole) <= most else f"{whole[: most - 1]}…"


def _acts(character: str) -> bool:
    odd = unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")
    return odd or ord(character) in _TURNING


def _code(character: str) -> str:
    return f"⟨{ord(character):02x}⟩"
