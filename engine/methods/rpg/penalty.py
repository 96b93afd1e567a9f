"""A penalty on the token that would begin a repeated structure once more."""

from collections.abc import Sequence

from torch import Tensor

from engine.core.constraint import Constraint
from engine.core.detokenizer import detokenizer
from engine.methods.rpg.line_structure import repeated, structures
from engine.methods.rpg.python_structure import statements


class StructurePenalty(Constraint):
    """Changes one logit wherever a new line begins. If the text before the new line ends with a repeated block of one
    structure, the token that began the last occurrence of the block is penalised. Its logit is multiplied by decay^n if
    it is positive, and divided by decay^n if it is negative, where n is the number of earlier occurrences. All other
    logits stay as they are. The block consists of statements if the finished lines are Python, and of lines
    otherwise."""

    def __init__(self, tokenizer, prompt: Sequence[int], decay: float) -> None:
        self._place = detokenizer(tokenizer).start
        self._decay = decay
        self._lines: list[str] = []
        self._firsts: list[int] = []  # the token with which each line begins behind its blanks
        self._open: tuple[str, int | None] = ("", None)  # the unfinished line, and its such token
        self.commit(prompt)
        self.committed = 0
        self.key = ("rpg", decay)

    def allowed(self, continuation: Sequence[int]) -> None:
        return None

    def weighed(self, logits: Tensor, continuation: Sequence[int]) -> Tensor:
        lines, firsts, (begun, _), _ = self._after(continuation)
        if begun.strip() or len(lines) < 2:
            return logits
        blocks = statements(lines) or structures(lines)
        size, times = repeated([structure for structure, _ in blocks])
        if not size:
            return logits
        weighed, token = logits.clone(), firsts[blocks[-size][1]]
        share = self._decay**times
        weighed[token] *= share if weighed[token] > 0 else 1 / share
        return weighed

    def commit(self, tokens: Sequence[int]) -> None:
        self._lines, self._firsts, self._open, self._place = self._after(tokens)
        self.committed += len(tokens)

    def _after(self, tokens: Sequence[int]):
        """Return the values that ``_lines``, ``_firsts``, ``_open`` and ``_place`` will have once these tokens are
        written."""
        lines, firsts, (begun, first), place = (
            [*self._lines],
            [*self._firsts],
            self._open,
            self._place,
        )
        for token in tokens:
            piece, _, place = place.add(token)
            *ended, begun = (begun + piece).split("\n")
            for line in ended:
                lines.append(line)
                firsts.append(token if first is None else first)
                first = None
            if first is None and begun.strip():
                first = token
        return lines, firsts, (begun, first), place
