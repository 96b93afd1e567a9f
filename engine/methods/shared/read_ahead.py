"""Rows that a draft model reads before they are asked for, and how many it reads in one call.

A call that reads several rows, each the likeliest token after the row before, costs less than as many calls. But a
chain may stop early, and then the rest was read in vain. So the number depends on the lengths of the last chains.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from engine.core.seen import ReadChain
from engine.model.session import UNREAD, Session

REMEMBERED = 12  # chains
CALL = 0.8
"""Milliseconds that a call adds to those of its rows, where a row takes one millisecond; measured on two cores."""


class ReadAhead:
    """blocks: the numbers of rows that one call can read, beside 1."""

    def __init__(self, blocks: Sequence[int]) -> None:
        self._blocks = blocks
        self._reads: deque[int] = deque(maxlen=REMEMBERED)

    def saw(self, reads: int) -> None:
        """Record how many rows the drafter wanted of a chain."""
        self._reads.append(reads)

    def rows(self, most: int, room: int, before: int = 0) -> int:
        """The number of rows to read in the next call for a chain that wants at most ``most`` more. room: rows that fit
        into the model's context. before: how many rows the chain has asked for."""
        fit = [1, *(block for block in self._blocks if most > 1 and block <= room)]
        wanted = [min(reads - before, most) for reads in self._reads if reads > before]
        wanted = wanted or [1 if self._reads else most]
        return min(fit, key=lambda block: sum(_cost(block, reads) for reads in wanted))


def _cost(block: int, reads: int) -> float:
    """A call of ``block`` rows, and then one call for each row that is still wanted."""
    later = max(0, reads - block)
    return CALL + block + later * (CALL + 1)


@dataclass(frozen=True)
class ReadRow:
    """A row that a draft model has read. q: [V] after it. state: its features [n*H], if the session returns any."""

    token: int
    q: Tensor
    state: Tensor | None


def read_rows(tokens: Sequence[int], q: Tensor, states: Tensor | None) -> list[ReadRow]:
    """q [R, V] and states [R, n*H] of rows with these tokens."""
    each = [None] * len(tokens) if states is None else states
    return [ReadRow(*row) for row in zip(tokens, q, each, strict=True)]


class RowsAhead:
    """A chain of likeliest tokens below the text, several of which the session reads in one call.

    law: logits [R, V] -> q [R, V]. read: how many rows the last call of ``begin`` or ``take`` read.
    """

    def __init__(self, session: Session, law: Callable[[Tensor], Tensor]) -> None:
        self._session, self._law, self._policy = session, law, ReadAhead(session.blocks)
        self.forget()

    def forget(self) -> None:
        """Forget the rows that were not taken."""
        self._rows: list[ReadRow] = []
        self._tip = -1  # the last row of the chain that was asked for
        self._asked = self._expected = self.read = 0

    def begin(self, tokens: Sequence[int], expected: int) -> Tensor:
        """Read and commit these tokens, and as many rows after them as pay. Returns q [V] after the tokens.

        expected: how many rows of q the caller will ask for at most along a chain, including this one."""
        if self._asked:
            self._policy.saw(self._asked)
        self.forget()
        self._asked, self._expected = 1, expected
        self.read = self._policy.rows(expected, self._room(len(tokens) - 1))
        if self.read == 1:
            return self._law(self._session.extend(tokens))
        if len(tokens) > UNREAD:  # a prompt: all but its last token are read in a pass of their own
            self._session.prefill(tokens[:-1], layers=())
            tokens = tokens[-1:]
        self._keep(tokens[-1], self._session.read_ahead(tokens, self.read))
        return self._rows.pop(0).q

    def take(self, token: int, parent_row: int | None, alone: bool) -> tuple[int, ReadRow] | None:
        """The next row of the chain and its number, if it has this token and this parent and was read ahead, or is read
        now because it pays to read more rows with it. alone: no other row is asked for, so that the row saves a call."""
        row, self.read = self._tip + 1, 0
        if parent_row != self._tip:
            return None
        if row == len(self._rows) and alone:
            self._read_on(token)
        if row >= len(self._rows) or self._rows[row].token != token:
            return None
        self._tip, self._asked = row, self._asked + alone
        return row, self._rows[row]

    def grow(self, row: int, parent_row: int, alone: bool) -> None:
        """Take note of a row that was read in a pass of its own; the best child of a node comes first."""
        if parent_row == self._tip and self._tip + 1 >= len(self._rows):
            self._tip, self._asked = row, self._asked + alone

    def _read_on(self, token: int) -> None:
        """Read the token and more rows in one call, if nothing else was read below the text and it pays."""
        if self._session.rows != len(self._rows):
            return
        count = self._policy.rows(self._expected - self._asked, self._room(0), self._asked)
        if count > 1:
            self.read = count
            self._keep(token, self._session.read_ahead([token], count, text=False))

    def _room(self, before: int) -> int:
        """Rows that fit into the model's context after ``before`` tokens that are still to be read."""
        session = self._session
        return session.model.max_context - session.length - session.rows - before

    def _keep(self, first: int, chain: ReadChain) -> None:
        tokens = [first, *chain.tokens[:-1]]
        self._rows += read_rows(tokens, self._law(chain.logits), chain.features)
