"""Reads a text with an EAGLE cell: true features as they come in, drafted ones beyond the end of the text."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.constraint import Constraint, masked
from engine.parts.eagle_cell import EagleCell
from engine.parts.eagle_context import context_of
from engine.sampling import Sampling, display_distribution
from engine.target.language_model import LanguageModel
from engine.transfer import to_device


class EagleReader:
    """Reads pairs of a feature and the token after it, one pass per level of the tree.

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
        self._context = context_of(cell)
        self._waiting: list[Tensor] = []
        self._known = 0  # number of features: those of tokens 0 ... known - 1
        self.passes = 0

    def learn(self, features: Tensor | None) -> None:
        """Take in the target's features [T, n*Ht] of the tokens that were committed next."""
        if features is not None and len(features):
            self._waiting.append(features)
            self._known += len(features)

    @torch.no_grad()
    def catch_up(self, context: Sequence[int]) -> Tensor | None:
        """Read the committed tokens, with true features in place of drafted ones; returns the state [H] at
        the text's last token, or None if no feature is known yet.

        Forced tokens at the end, which the target has not seen, are read with drafted features.
        """
        if not self._known:
            return None
        if self._waiting:
            states = self.fuse(torch.cat(self._waiting))
            self._waiting = []
            tokens = context[self._context.length + 1 : self._known + 1]
            self._state = self._context.read(states, self._embedded(tokens))
            self.passes += 1
        if self._constraint is not None:
            self._path = tuple(context[self._prompt_length + self._constraint.committed :])
        state = self._state
        for depth, token in enumerate(context[self._known + 1 :]):
            self.passes += 1
            state = self._context.grow(state[None], self._embedded([token]), depth, None)[0]
        self._forced = len(context) - 1 - self._known
        return state

    @torch.no_grad()
    def grow(
        self, states: Tensor, tokens: Sequence[int], depth: int, seen: Tensor | None
    ) -> Tensor:
        """Read a level of the tree: the states [R, H] at the parents, and the tokens -> the states [R, H] at the
        tokens. depth: 0 for the root's children. seen: bool [R, S + R], the drafted rows that each row sees, including
        itself; None: all."""
        self.passes += 1
        forced = self._forced
        if seen is not None and forced:
            seen = torch.cat([seen.new_ones(len(seen), forced), seen], -1)
        if seen is not None:
            seen = to_device(seen, states.device)
        return self._context.grow(states, self._embedded(tokens), depth + forced, seen)

    @torch.no_grad()
    def law(self, states: Tensor, paths: Sequence[Sequence[int]]) -> Tensor:
        """q [R, V] after the states [R, H]. paths: the drafted tokens that lead to each state."""
        target = self._target
        logits = self._cell.logits(states, target.head)
        logits = self._cell.spread(logits, target.vocab_size)
        if self._constraint is not None:
            rows = zip(logits, paths, strict=True)
            logits = torch.stack([self._constrained(row, path) for row, path in rows])
        return display_distribution(logits, self._sampling)

    def fuse(self, features: Tensor) -> Tensor:
        """True features [T, n*Ht] -> states [T, H]"""
        return self._cell.fuse(features)

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
