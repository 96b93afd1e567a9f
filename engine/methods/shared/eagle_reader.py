"""Reads a text with an EAGLE cell: true features as they come in, drafted ones beyond the end of the text."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.core.constraint import Constraint, masked
from engine.core.finite import refuse_nan
from engine.core.sampling import Sampling, display_distribution
from engine.core.transfer import to_device
from engine.methods.shared.eagle_cell import EagleCell
from engine.methods.shared.eagle_context import Read, context_of
from engine.methods.shared.levels_ahead import Level, LevelsAhead
from engine.model.language_model import LanguageModel


class EagleReader:
    """Reads pairs of a feature and the token after it: a level of the tree in one pass, or several levels of one row.

    passes: how often the cell was run.
    """

    def __init__(
        self,
        cell: EagleCell,
        target: LanguageModel,
        sampling: Sampling,
        constraint: Constraint | None = None,
        prompt_length: int = 0,
    ) -> None:
        self._cell, self._target, self._sampling = cell, target, sampling
        self._constraint, self._prompt_length = constraint, prompt_length
        self._context = context_of(cell, target)
        self._ahead = LevelsAhead(self._context, self._law)
        self._waiting: list[Tensor] = []
        self._known = 0  # number of features: those of tokens 0 ... known - 1
        self.passes = 0

    def learn(self, features: Tensor | None) -> None:
        """Take in the target's features [T, n*Ht] of the tokens that were committed next."""
        if features is not None and len(features):
            self._waiting.append(features)
            self._known += len(features)

    @torch.no_grad()
    def catch_up(self, context: Sequence[int], expected: int = 1) -> Level | None:
        """Read the committed tokens, with true features in place of drafted ones; returns the level of the text's last
        token alone, or None if no feature is known yet.

        Forced tokens at the end, which the target has not seen, are read with drafted features.
        expected: how many levels the caller will ask for at most, including this one, if each has one row. The cell
        may read several of them in one call.
        """
        if not self._known:
            return None
        if self._constraint is not None:
            self._path = tuple(context[self._prompt_length + self._constraint.committed :])
        if self._waiting:
            states = self.fuse(torch.cat(self._waiting))
            self._waiting = []
            tokens = context[self._context.length + 1 : self._known + 1]
            self._top = self._read(states, tokens, expected)
        level, self._forced = self._top, 0
        for token in context[self._known + 1 :]:
            level = self._grown(level.states, [token], self._forced, None, [()])
            self._forced += 1
        return level

    @torch.no_grad()
    def at_once(self, context: Sequence[int], count: int) -> Tensor | None:
        """Read the committed tokens, and ``count`` - 1 masks behind them in the same pass: q [count, V] of the tokens that come
        next, each blind to those before it; None if no feature is known yet. Forced tokens at the end, which the target has
        not seen, are read with the mask's state."""
        if not self._waiting:
            return None
        states = self.fuse(torch.cat(self._waiting))
        self._waiting = []
        masks = [self._cell.config.mask_token] * (count - 1)
        tokens = [*context[self._context.length + 1 :], *masks]
        ahead = len(tokens) - len(states)
        states = torch.cat([states, self._cell.mask_state().expand(ahead, -1)])
        self.passes += 1
        read = self._context.read(states, self._embedded(tokens), ahead)
        return self._law(read.logits[-count:])

    @torch.no_grad()
    def grow(
        self,
        states: Tensor,
        tokens: Sequence[int],
        depth: int,
        seen: Tensor | None,
        paths: Sequence[Sequence[int]],
    ) -> Level:
        """Read a level of the tree, given the states [R, H] at the parents, and the tokens.

        depth: 0 for the root's children. seen: bool [R, S + R], the drafted rows that each row sees, including
        itself; None: all. paths: the drafted tokens down to each row."""
        found = self._ahead.take(states, tokens, depth, self._embedded)
        self.passes += self._ahead.read
        if found is not None:
            return found
        forced = self._forced
        if seen is not None and forced:
            seen = torch.cat([seen.new_ones(len(seen), forced), seen], -1)
        if seen is not None:
            seen = to_device(seen, states.device)
        return self._grown(states, tokens, depth + forced, seen, paths)

    def fuse(self, features: Tensor) -> Tensor:
        """True features [T, n*Ht] -> states [T, H]"""
        return self._cell.fuse(features)

    def _read(self, states: Tensor, tokens: Sequence[int], expected: int) -> Level:
        """Commit these pairs."""
        embedded = self._embedded(tokens)
        ahead = self._ahead.begin(states, embedded, expected if self._constraint is None else 1)
        self.passes += self._ahead.read or 1
        return ahead or self._level(self._context.read(states, embedded), [()])

    def _grown(self, states: Tensor, tokens: Sequence[int], depth: int, seen, paths) -> Level:
        self.passes += 1
        return self._level(self._context.grow(states, self._embedded(tokens), depth, seen), paths)

    def _level(self, read: Read, paths: Sequence[Sequence[int]]) -> Level:
        return Level(read.states, self._law(read.logits, paths))

    def _law(self, logits: Tensor, paths: Sequence[Sequence[int]] = ()) -> Tensor:
        """logits [R, v] in the cell's own vocabulary -> q [R, V]. paths: for a constraint, the drafted tokens down to
        each row."""
        logits = self._cell.spread(logits, self._target.vocab_size)
        if self._constraint is not None:
            rows = zip(logits, paths, strict=True)
            logits = torch.stack([self._constrained(row, path) for row, path in rows])
        q = display_distribution(logits, self._sampling)
        refuse_nan(q, "The feature drafter")
        return q.cpu()

    def _constrained(self, logits: Tensor, path: Sequence[int]) -> Tensor:
        allowed = self._constraint.allowed((*self._path, *path))
        found = masked(logits, allowed)
        if allowed is not None and float(found.amax()) == float("-inf"):
            return masked(torch.zeros_like(logits), allowed)  # the draft knows none of these tokens
        return found

    def _embedded(self, tokens: Sequence[int]) -> Tensor:
        """[R, H]; a token that has no embedding is read as token 0."""
        cell, target = self._cell, self._target
        if cell.embed_tokens is None:
            tokens = target.readable(tokens)
        else:
            known = cell.config.vocab_size
            tokens = [token if token < known else 0 for token in tokens]
        return cell.embed(to_device(torch.tensor(tokens), target.device), target.embed)
