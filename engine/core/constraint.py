"""A constraint on the text: which tokens may come next, and which tokens are forced.

``Constraint.applied`` applies it to the logits of the target and of the draft, so that p and q are laws of the
constrained text.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence

import torch
from torch import Tensor

from engine.core.tree import ROOT, DraftTree
from engine.errors import UserError


class Constraint(ABC):
    """The constraint on one text. Its methods answer questions about continuations of the tokens committed so far.

    committed: the number of tokens committed after the prompt.
    key: two constraints with the same key allow the same texts, so drafters and rules may use for one text what they
    have learned about the other. With None, what they learn about this constraint is used for its own text only.
    looks_ahead: whether ``begin`` calls ``read``.
    """

    committed: int = 0
    key: Hashable = None
    looks_ahead: bool = False

    def begin(self, read: Callable[[DraftTree], Tensor]) -> None:
        """Called before the first step. read: a function that runs the target over a tree below the end of the prompt,
        and returns the logits [N+1, V] after the prompt and after each of the tree's N nodes."""

    @abstractmethod
    def allowed(self, continuation: Sequence[int]) -> Tensor | None:
        """bool [V]: the tokens that may follow the committed text and ``continuation``; None if every token may.

        At least one token is always allowed; ``DeadEnds`` treats continuations that no token may follow.
        """

    def allows(self, continuation: Sequence[int], token: int) -> bool:
        """Whether this one token may follow. The default looks it up in the mask of ``allowed``; subclasses may do it
        more cheaply."""
        mask = self.allowed(continuation)
        return mask is None or (token < len(mask) and bool(mask[token]))

    def weighed(self, logits: Tensor, continuation: Sequence[int]) -> Tensor:
        """logits [V] after the committed text and ``continuation``, reweighted where the constraint prefers some
        allowed tokens to others. The default returns them unchanged."""
        return logits

    def applied(self, logits: Tensor, continuation: Sequence[int]) -> Tensor:
        """logits [V] after ``continuation``, masked to the allowed tokens and then weighed."""
        return self.weighed(masked(logits, self.allowed(continuation)), continuation)

    def dead(self, continuation: Sequence[int]) -> bool:
        """Whether an earlier call of ``allowed`` found that no token may follow ``continuation``."""
        return False

    def forced(self, continuation: Sequence[int], most: int) -> list[int]:
        """Up to ``most`` tokens that must follow ``continuation``, each the only one allowed."""
        tokens: list[int] = []
        while len(tokens) < most:
            mask = self.allowed((*continuation, *tokens))
            if mask is None or int(mask.sum()) != 1:
                break
            tokens.append(int(mask.nonzero()))
        return tokens

    @abstractmethod
    def commit(self, tokens: Sequence[int]) -> None:
        """Append these tokens to the committed text."""


class DeadEnds:
    """Allowed continuations that no token may follow.

    A draft may run into a dead end and be rejected there. A text may not, because the token after the dead end would be
    one that is not allowed.
    """

    def __init__(self) -> None:
        self._reasons: dict[tuple[int, ...], str] = {}

    def add(self, continuation: tuple[int, ...], reason: str) -> None:
        """Record a dead end. reason: a sentence. Raises UserError with this reason if the continuation is empty,
        because then the text itself cannot go on."""
        if not continuation:
            raise UserError(reason)
        self._reasons[continuation] = reason

    def __contains__(self, continuation: tuple[int, ...]) -> bool:
        return continuation in self._reasons

    def commit(self, tokens: Sequence[int]) -> None:
        """Raises UserError, with the recorded reason, if one of these tokens comes after a dead end."""
        for continuation, reason in self._reasons.items():
            if len(continuation) < len(tokens) and continuation == tuple(
                tokens[: len(continuation)]
            ):
                raise UserError(reason)
        self._reasons.clear()


class Joined(Constraint):
    """Several constraints on one text: a token is allowed if every constraint allows it."""

    def __init__(self, constraints: Sequence[Constraint], reason: str) -> None:
        """reason: the sentence of the UserError for a text that no token may follow."""
        self._constraints, self._reason = constraints, reason
        self._dead = DeadEnds()
        self.committed = 0
        keys = tuple(constraint.key for constraint in constraints)
        self.key = None if None in keys else keys
        self.looks_ahead = any(constraint.looks_ahead for constraint in constraints)

    def begin(self, read: Callable[[DraftTree], Tensor]) -> None:
        for constraint in self._constraints:
            constraint.begin(read)

    def allows(self, continuation: Sequence[int], token: int) -> bool:
        return all(constraint.allows(continuation, token) for constraint in self._constraints)

    def dead(self, continuation: Sequence[int]) -> bool:
        own = tuple(continuation) in self._dead
        return own or any(constraint.dead(continuation) for constraint in self._constraints)

    def allowed(self, continuation: Sequence[int]) -> Tensor | None:
        common = None
        for constraint in self._constraints:
            mask = constraint.allowed(continuation)
            if mask is not None:
                common = mask if common is None else common & mask
        if common is None or bool(common.any()):
            return common
        self._dead.add(tuple(continuation), self._reason)
        return None

    def weighed(self, logits: Tensor, continuation: Sequence[int]) -> Tensor:
        for constraint in self._constraints:
            logits = constraint.weighed(logits, continuation)
        return logits

    def commit(self, tokens: Sequence[int]) -> None:
        self._dead.commit(tokens)
        for constraint in self._constraints:
            constraint.commit(tokens)
        self.committed += len(tokens)


def masked(logits: Tensor, allowed: Tensor | None) -> Tensor:
    """logits [V] with minus infinity for every token that is not allowed."""
    if allowed is None:
        return logits
    allowed = allowed.to(logits.device)
    if allowed.shape[-1] < logits.shape[-1]:
        padding = (0, logits.shape[-1] - allowed.shape[-1])
        allowed = torch.nn.functional.pad(allowed, padding, value=False)
    return logits.masked_fill(~allowed[: logits.shape[-1]], float("-inf"))


def masked_tree(logits: Tensor, tree: DraftTree, constraint: Constraint | None) -> Tensor:
    """logits [N+1, V] after the root and each node of the tree, with the constraint applied.

    The row of a node that the constraint forbids is left unmasked. It need not be masked, because the row of the node's
    parent gives the node's token no probability.
    """
    if constraint is None:
        return logits
    rows, possible = [], {ROOT: True}
    for node in range(ROOT, len(tree)):
        path = [tree.tokens[place] for place in tree.path(node)]
        if node != ROOT:
            above = rows[tree.parents[node] + 1][tree.tokens[node]]
            possible[node] = possible[tree.parents[node]] and bool(above > float("-inf"))
        row = logits[node + 1]
        rows.append(constraint.applied(row, path) if possible[node] else row)
    return torch.stack(rows)
