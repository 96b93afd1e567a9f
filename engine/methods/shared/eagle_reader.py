"""Runs an EAGLE cell over a text: with the target's features for committed tokens, and with drafted features after
them.

Letters in shapes: T newly committed tokens, R rows, S drafted rows before them, H hidden size of the cell, Ht that of
the target, n target layers that give features, V the target's vocabulary, v the cell's own vocabulary.
"""

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
    """Runs a cell over rows, each of which is a pair of a feature and the token after it. One pass computes a level of
    the draft tree, or several levels of one row each.

    passes: how many passes the cell has made.
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
        """Store the target's features [T, n*Ht] of the newly committed tokens. The next call of ``catch_up`` or
        ``at_once`` uses them."""
        if features is not None and len(features):
            self._waiting.append(features)
            self._known += len(features)

    @torch.no_grad()
    def catch_up(self, context: Sequence[int], expected: int = 1) -> Level | None:
        """Run the cell over the newly committed tokens, with the target's features. Returns a level with one row, for
        the text's last token; None if no feature was stored yet.

        The target was not run over forced tokens at the end of the text; for these tokens the cell uses its drafted
        features. expected: the most levels that the caller will request in this step, including this level, if each
        level has one row. The cell may compute several of them in one call.
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
        """Run the cell over the newly committed tokens and, in the same pass, over ``count`` - 1 masks after them.
        Returns q [count, V] of the next ``count`` tokens; None if no new feature was stored. None of these rows depends
        on a token that another row predicts. The target was not run over forced tokens at the end of the text; they get
        the mask's state as their feature."""
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
        """Run the cell over a level of the tree: R tokens, each with the state at its parent as its feature, states [R,
        H].

        depth: 0 for the root's children. seen: bool [R, S + R], True where a row may attend to an earlier drafted row,
        to another row of the level or to itself; None: everywhere. paths: for each row, the drafted tokens from the
        root down to the row's own token.
        """
        level = self._ahead.take(states, tokens, depth, self._embedded)
        self.passes += self._ahead.read
        if level is not None:
            return level
        forced = self._forced
        if seen is not None and forced:
            seen = torch.cat([seen.new_ones(len(seen), forced), seen], -1)
        if seen is not None:
            seen = to_device(seen, states.device)
        return self._grown(states, tokens, depth + forced, seen, paths)

    def fuse(self, features: Tensor) -> Tensor:
        """Turn the target's features [T, n*Ht] into states [T, H]; see ``EagleCell.fuse``."""
        return self._cell.fuse(features)

    def _read(self, states: Tensor, tokens: Sequence[int], expected: int) -> Level:
        """Run the cell over R committed pairs, given as states [R, H] and tokens, and commit them. Returns the level of
        the last pair."""
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
        """Turn logits [R, v] over the cell's own vocabulary into q [R, V] on the host. paths: for each row, the drafted
        tokens from the root down to the row's own token; used only with a constraint. Raises UserError for NaN."""
        logits = self._cell.spread(logits, self._target.vocab_size)
        if self._constraint is not None:
            rows = zip(logits, paths, strict=True)
            logits = torch.stack([self._constrained(row, path) for row, path in rows])
        q = display_distribution(logits, self._sampling)
        refuse_nan(q, "The feature drafter")
        return q.cpu()

    def _constrained(self, logits: Tensor, path: Sequence[int]) -> Tensor:
        allowed = self._constraint.allowed((*self._path, *path))
        allowed_logits = masked(logits, allowed)
        if allowed is not None and float(allowed_logits.amax()) == float("-inf"):
            return masked(torch.zeros_like(logits), allowed)  # the draft knows none of these tokens
        return allowed_logits

    def _embedded(self, tokens: Sequence[int]) -> Tensor:
        """Return the embeddings [R, H] of R tokens; a token that has no embedding gets that of token 0."""
        cell, target = self._cell, self._target
        if cell.embed_tokens is None:
            tokens = target.readable(tokens)
        else:
            size = cell.config.vocab_size
            tokens = [token if token < size else 0 for token in tokens]
        return cell.embed(to_device(torch.tensor(tokens), target.device), target.embed)
