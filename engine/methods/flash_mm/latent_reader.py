"""Runs the cell of FLASH over a text that follows a picture, and drafts several tokens in one pass of the cell.

Letters in shapes: T tokens, R rows of a pass, H hidden size, P patches, C latents, K features that the cell drafts at
once, L drafted tokens, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from engine.core.finite import refuse_nan
from engine.core.sampling import Sampling, display_distribution
from engine.methods.flash_mm.part import LatentCell
from engine.methods.shared.module_columns import ModuleColumns, causal
from engine.model.language_model import LanguageModel


class LatentReader:
    """The cell's state for one text. A *row* is the pair of feature i and token i + 1; with a picture, the first such
    pair has the feature of the last patch. Before these rows stand the latents, which replace the patches.

    patches: the number of patches at the front of the text, 0 without a picture. shares: [C, P], the weight of each
    patch in each latent; None without a picture, and before the target has run over the patches. passes: how often the
    cell was run.
    """

    def __init__(
        self, cell: LatentCell, target: LanguageModel, sampling: Sampling, patches: int
    ) -> None:
        self._cell, self._target, self._sampling = cell, target, sampling
        self._columns, self._rows = ModuleColumns.of(1), 0
        self._waiting: list[Tensor] = []
        self._known = 0  # number of features so far, of the tokens 0 to known - 1
        self._paired = max(0, patches - 1)  # number of features whose pairs were read
        self._patches, self.shares = patches, None
        self._made: Tensor | None = None  # features [K, H] behind the text
        self.passes = 0

    def learn(self, features: Tensor | None) -> None:
        """Take in the target's features [T, H] of the tokens that were committed since the last call."""
        if features is not None and len(features):
            self._waiting.append(features)
            self._known += len(features)

    @torch.no_grad()
    def next_tokens(self, context: Sequence[int], length: int, again) -> tuple[list[int], Tensor]:
        """Return the likeliest tokens after the text, at most ``length``, and their laws q [L, V]. Both are empty until
        the target has given features for the cell. again: is called with the laws so far, and says whether another pass
        of the cell is worth its time.

        The text may end with forced tokens, over which the target has not run yet. The cell's first predictions are for
        the positions of these tokens, so they are replaced by the forced tokens and not returned.
        """
        if self._known > self._paired:
            self._made = self._through(self._fresh(context), commit=True)
        if self._made is None:
            return [], torch.empty(0, self._target.vocab_size)
        forced, states = list(context[self._known + 1 :]), self._made
        laws = self._laws(states)
        tokens = [*forced, *laws.argmax(-1).tolist()[len(forced) :]]
        ahead = 0
        while len(tokens) < len(forced) + length and again(laws[len(forced) :]):
            fed = tokens[ahead:]
            states = self._through(self._cell.pairs(states[: len(fed)], self._embedded(fed)), ahead)
            ahead += len(fed)
            laws = torch.cat([laws[:ahead], self._laws(states)])
            tokens = [*tokens, *laws.argmax(-1).tolist()[len(tokens) :]]
        drafted = slice(len(forced), len(forced) + length)
        return tokens[drafted], laws[drafted].cpu()

    def _fresh(self, context: Sequence[int]) -> Tensor:
        """Return the rows [R, H] of the text over which the target has run since the last call; the first call with a
        picture puts the latents before them."""
        features = torch.cat(self._waiting)
        self._waiting = []
        rows = []
        if self._patches and self.shares is None:
            patch_features = features[: self._patches]
            self.shares = self._cell.shares(patch_features)
            rows.append(self._cell.latents(patch_features))
            features = features[self._patches - 1 :]
        tokens = context[self._paired + 1 : self._known + 1]
        self._paired = self._known
        return torch.cat([*rows, self._cell.pairs(features, self._embedded(tokens))])

    def _through(self, rows: Tensor, ahead: int = 0, commit: bool = False) -> Tensor:
        """Run the cell over these rows; return the features [K, H] predicted by the last row. ahead: how many drafted
        rows stand between the committed rows and these. commit: whether these rows are committed, so that later passes
        see them."""
        begin, count = self._rows + ahead, len(rows)
        places = torch.arange(begin, begin + count, device=rows.device)
        attend = self._columns.attention(begin, count, causal(count, begin, rows.device))
        self.passes += 1
        self._rows += count if commit else 0
        return self._cell(rows, self._cell.turn(places), partial(attend, 0))[-1]

    def _embedded(self, tokens: Sequence[int]) -> Tensor:
        ids = torch.tensor(self._target.readable(tokens), device=self._target.device)
        return self._target.embed(ids)

    def _laws(self, features: Tensor) -> Tensor:
        """Map features [K, H] to q [K, V]."""
        q = display_distribution(self._target.head(features), self._sampling)
        refuse_nan(q, "The latent drafter")
        return q
