"""Reasoning steps: finds where a step ends, and which cue words it contains."""

import re
from collections.abc import Container, Sequence

from engine.core.exhibits import Gauge

SHORT = 4  # cues of at most so many letters (yes, wait) begin many other words, so only whole words match
ENDINGS = {"line": ("\n",), "sentence": ("\n", ".")}
"""Kind of ending -> strings. A token ends a reasoning step if its text contains a line break, or ends with one of these
strings."""

CUES = {
    "affirmation": ("yes", "yeah", "final answer", "confident"),
    "reflection": ("wait", "alternatively", "hold on", "another"),
    "verification": ("verify", "think again", "recap", "check"),
}
"""The cue words that the authors of Speculative Thinking use, by the kind of thought that they announce."""

COLUMN_CUES = {"affirmation": ("answer",), "reflection": ("borrow:",)}
"""The cue words for the models that are embedded in this app. They work sums in columns; "answer" comes before the
result, and "borrow:" before a borrow."""


class Steps:
    """Finds the ends of steps in a text. Without a tokenizer only the end of the text ends a step."""

    def __init__(self, tokenizer, ending: str, end_tokens: Container[int]) -> None:
        """ending: a key of ``ENDINGS``. end_tokens: the tokens that end the text."""
        self._tokenizer, self._ends = tokenizer, ENDINGS[ending]
        self._end_tokens = end_tokens
        self._known: dict[int, bool] = {}

    def ended(self, step: Sequence[int]) -> bool:
        """Return whether the last of these tokens ends a reasoning step. White space alone, or no token at all, is not
        a step. An end token always ends a step, because no token drafted after it could be accepted."""
        if not step:
            return False
        if step[-1] in self._end_tokens:
            return True
        return self._ends_with(step[-1]) and any(self._says(token) for token in step)

    def _ends_with(self, token: int) -> bool:
        if token not in self._known:
            text = self.text([token])
            self._known[token] = "\n" in text or text.rstrip(" ").endswith(self._ends)
        return self._known[token]

    def _says(self, token: int) -> bool:
        return bool(self.text([token]).strip())

    def text(self, tokens: Sequence[int]) -> str:
        return "" if self._tokenizer is None else self._tokenizer.decode(list(tokens))


def cue_in(text: str, kinds: dict[str, tuple[str, ...]]) -> tuple[str, str] | None:
    """Return the first cue word found in this text, in the order of ``kinds``, as (kind, cue); None if the text has
    none. Cues match whole words, but a cue of more than four letters may have an ending ("checking" for "check")."""
    for kind, cues in kinds.items():
        for cue in cues:
            if re.search(_pattern(cue), text, re.IGNORECASE):
                return kind, cue
    return None


def _pattern(cue: str) -> str:
    left = r"\b" if cue[0].isalnum() else ""
    right = r"\b" if len(cue) <= SHORT and cue.isalpha() else ""
    return left + re.escape(cue) + right


def share_written(written: dict[str, int]) -> Gauge:
    """Return a gauge of the share of the text that the small model wrote. written: "small" or "large" -> the number of
    tokens that this model wrote."""
    note = "Lossy: what it wrote need not be what the large model would have written."
    value = written["small"] / max(1, sum(written.values()))
    return Gauge("Share of the text written by the small model", value, note=note)
