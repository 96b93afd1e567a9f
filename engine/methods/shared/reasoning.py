"""Reasoning steps: where one ends, and which words in it ask for help."""

import re
from collections.abc import Container, Sequence

from engine.core.exhibits import Gauge

SHORT = 4  # cues of at most so many letters (yes, wait) begin many other words, so only whole words match
ENDINGS = {"line": ("\n",), "sentence": ("\n", ".")}
"""A token ends a step if its text holds a line break or ends with one of these."""

CUES = {
    "affirmation": ("yes", "yeah", "final answer", "confident"),
    "reflection": ("wait", "alternatively", "hold on", "another"),
    "verification": ("verify", "think again", "recap", "check"),
}
"""The cues of Speculative Thinking's authors."""

COLUMN_CUES = {"affirmation": ("answer",), "reflection": ("borrow:",)}
"""Cues in a worked sum in columns, as the embedded models write it: naming the result, and having to borrow."""


class Steps:
    """The steps of a text. Without a tokenizer only the end of the text ends a step."""

    def __init__(self, tokenizer, ending: str, end_tokens: Container[int]) -> None:
        """ending: a key of ``ENDINGS``. end_tokens: those that end the text."""
        self._tokenizer, self._ends = tokenizer, ENDINGS[ending]
        self._end_tokens = end_tokens
        self._known: dict[int, bool] = {}

    def ended(self, step: Sequence[int]) -> bool:
        """Whether the last of these tokens ends a step. Neither white space alone nor an empty sequence is a
        step, but an end of the text is one by itself: nothing drafted behind it could be kept."""
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
    """The kind of the first group with a cue in this text, and the cue. Cues match whole words, but those of more
    than four letters may have an ending (\"checking\")."""
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
    """written: tokens by "small" and "large"."""
    note = "Lossy: what it wrote need not be what the large model would have written."
    value = written["small"] / max(1, sum(written.values()))
    return Gauge("Share of the text written by the small model", value, note=note)
