"""A constraint on the text: which tokens may come next, and which one must.

One function, ``Constraint.applied``, applies it to the logits of target and draft alike, so that p and q are
laws of the constrained text.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence

import torch
from torch import Tensor

from engine.core.tree import ROOT, DraftTree
from engine.errors import UserError


class Constraint(ABC):
    """The rule for one text. It is asked about continuations of the tokens committed so far.

    committed: how many tokens were committed after the prompt. key: two constraints with one key allow the same texts; None:
    what is learned about this one serves its text alone. looks_ahead: whether ``begin`` reads anything.
    """

    committed: int = 0
    key: Hashable = None
    looks_ahead: bool = False

    def begin(self, read: Callable[[DraftTree], Tensor]) -> None:
        """Called before the first step. read: a tree behind the prompt -> the target's logits [N+1, V] after the prompt and
        after each node."""

    @abstractmethod
    def allowed(self, continuation: Sequence[int]) -> Tensor | None:
        """bool [V]: the tokens that may follow the committed text and ``continuation``.

        None if every token may. At least one token is always allowed: where none is, see ``DeadEnds``.
        """

    def allows(self, continuation: Sequence[int], token: int) -> bool:
        """Whether this one token may follow, by the tokens that may where that is not cheaper told."""
        mask = self.allowed(continuation)
        return mask is None or (token < len(mask) and bool(mask[token]))

    def weighed(self, logits: Tensor, continuation: Sequence[int]) -> Tensor:
        """logits [V] after the committed text and ``continuation``, where the rule prefers some of the allowed tokens to others;
        the same for all other constraints."""
        return logits

    def applied(self, logits: Tensor, continuation: Sequence[int]) -> Tensor:
        """logits [V] after ``continuation``, cut to the allowed tokens and weighed."""
        return self.weighed(masked(logits, self.allowed(continuation)), continuation)

    def dead(self, continuation: Sequence[int]) -> bool:
        """Whether no token may follow, as far as that was told when ``allowed`` was asked."""
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
        """These tokens belong to the text now."""


class DeadEnds:
    """Continuations after which no token may come, though they are allowed themselves.

    A draft may run into one and be refused; the text may not: its last token would be followed by one that is not
    allowed.
    """

    def __init__(self) -> None:
        self._reasons: dict[tuple[int, ...], str] = {}

    def add(self, continuation: tuple[int, ...], reason: str) -> None:
        """reason: a sentence. Raises it as a UserError if it is the text itself that cannot go on."""
        if not continuation:
            raise UserError(reason)
        self._reasons[continuation] = reason

    def __contains__(self, continuation: tuple[int, ...]) -> bool:
        return continuation in self._reasons

    def commit(self, tokens: Sequence[int]) -> None:
        """Raises UserError, with the reason, if one of these tokens comes after a dead end."""
        for continuation, reason in self._reasons.items():
            if len(continuation) < len(tokens) and continuation == tuple(
                tokens[: len(continuation)]
            ):
                raise UserError(reason)
        self._reasons.clear()


class Joined(Constraint):
    """Several constraints on one text: a token is allowed if each allows it."""

    def __init__(self, constraints: Sequence[Constraint], reason: str) -> None:
        """reason: a sentence for a text in which no token is left."""
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
    """logits [V] with every token that is not allowed at minus infinity."""
    if allowed is None:
        return logits
    allowed = allowed.to(logits.device)
    if allowed.shape[-1] < logits.shape[-1]:
        padding = (0, logits.shape[-1] - allowed.shape[-1])
        allowed = torch.nn.functional.pad(allowed, padding, value=False)
    return logits.masked_fill(~allowed[: logits.shape[-1]], float("-inf"))


def masked_tree(logits: Tensor, tree: DraftTree, constraint: Constraint | None) -> Tensor:
    """logits [N+1, V] after the root and each node of the tree, with the constraint applied.

    The row of a node that the constraint forbids stays as it is: its parent's row gives the node no
    probability.
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
