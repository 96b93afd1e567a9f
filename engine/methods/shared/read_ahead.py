"""Lets a draft model compute several rows of a chain in one call, before the drafter requests them.

A row is the draft model's output for one token. One call that computes several rows, each for the likeliest token after
the row before, costs less than one call per row. But a chain may stop early, and then the remaining rows were computed
in vain. So the number of rows in a call depends on the lengths of the last chains.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from engine.core.seen import ReadChain
from engine.model.session import UNREAD, Session

REMEMBERED = 12  # how many of the last chains are remembered
CALL = 0.8
"""The fixed cost of a call, in units of the cost of a row; measured on two cores, where a row takes one millisecond."""


class ReadAhead:
    """Chooses how many rows a call computes. blocks: the numbers of rows that one call can compute, besides 1."""

    def __init__(self, blocks: Sequence[int]) -> None:
        self._blocks = blocks
        self._reads: deque[int] = deque(maxlen=REMEMBERED)

    def saw(self, reads: int) -> None:
        """Record how many rows of a chain the drafter requested."""
        self._reads.append(reads)

    def rows(self, most: int, room: int, before: int = 0) -> int:
        """Return the number of rows to compute in the next call. most: the most rows that the chain may still request.
        room: the number of rows that fit into the model's context. before: the number of rows that the chain has
        requested so far."""
        fit = [1, *(block for block in self._blocks if most > 1 and block <= room)]
        lengths = [min(reads - before, most) for reads in self._reads if reads > before]
        lengths = lengths or [1 if self._reads else most]
        return min(fit, key=lambda block: sum(_cost(block, reads) for reads in lengths))


def _cost(block: int, reads: int) -> float:
    """Return the cost of ``reads`` rows: one call that computes ``block`` rows, then one call for each further row."""
    later = max(0, reads - block)
    return CALL + block + later * (CALL + 1)


@dataclass(frozen=True)
class ReadRow:
    """The draft model's output for one token. q: [V], the distribution after the token. state: the features [n*H] at
    the token; None if the session returns no features."""

    token: int
    q: Tensor
    state: Tensor | None


def read_rows(tokens: Sequence[int], q: Tensor, states: Tensor | None) -> list[ReadRow]:
    """Return R rows for these tokens, from q [R, V] and from states [R, n*H] or None."""
    row_states = [None] * len(tokens) if states is None else states
    return [ReadRow(*row) for row in zip(tokens, q, row_states, strict=True)]


class RowsAhead:
    """A chain of likeliest tokens after the text, of which the session can compute several rows in one call.

    law: the function from logits [R, V] to q [R, V]. read: the number of rows that the last call of ``begin`` or
    ``take`` computed.
    """

    def __init__(self, session: Session, law: Callable[[Tensor], Tensor]) -> None:
        self._session, self._law, self._policy = session, law, ReadAhead(session.blocks)
        self.forget()

    def forget(self) -> None:
        """Forget all rows of the chain."""
        self._rows: list[ReadRow] = []
        self._tip = -1  # the last requested row of the chain; -1: the text's last token
        self._asked = self._expected = self.read = 0

    def begin(self, tokens: Sequence[int], expected: int) -> Tensor:
        """Run the draft model over these tokens of the text and commit them; if it pays, compute rows of the chain in
        the same call. Returns q [V] after the last of the tokens.

        expected: the most rows of q that the caller will request along the chain, counting the returned one.
        """
        if self._asked:
            self._policy.saw(self._asked)
        self.forget()
        self._asked, self._expected = 1, expected
        self.read = self._policy.rows(expected, self._room(len(tokens) - 1))
        if self.read == 1:
            return self._law(self._session.extend(tokens))
        if (
            len(tokens) > UNREAD
        ):  # a prompt: its last token is read in the call, all others before it
            self._session.prefill(tokens[:-1], layers=())
            tokens = tokens[-1:]
        self._keep(tokens[-1], self._session.read_ahead(tokens, self.read))
        return self._rows.pop(0).q

    def take(self, token: int, parent_row: int | None, alone: bool) -> tuple[int, ReadRow] | None:
        """Return the index of the chain's next row, and this row, if the row has this token and this parent. If the row
        was not computed ahead, but it pays to compute it now together with further rows, this is done first. Otherwise
        return None. alone: whether the caller requests only this row, so that computing it ahead saves a whole call."""
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
        """Append a row to the chain, after the caller has computed it in a separate pass. If several rows have the same
        parent, only the first of them is appended."""
        if parent_row == self._tip and self._tip + 1 >= len(self._rows):
            self._tip, self._asked = row, self._asked + alone

    def _read_on(self, token: int) -> None:
        """Compute the rows of this token and of further tokens in one call. Do nothing if this does not pay, or if rows
        outside of the chain were computed after the text."""
        if self._session.rows != len(self._rows):
            return
        count = self._policy.rows(self._expected - self._asked, self._room(0), self._asked)
        if count > 1:
            self.read = count
            self._keep(token, self._session.read_ahead([token], count, text=False))

    def _room(self, before: int) -> int:
        """Return how many rows will still fit into the model's context after ``before`` more tokens."""
        session = self._session
        return session.model.max_context - session.length - session.rows - before

    def _keep(self, first: int, chain: ReadChain) -> None:
        tokens = [first, *chain.tokens[:-1]]
        self._rows += read_rows(tokens, self._law(chain.logits), chain.features)
