"""The common base of drafters with prompt tokens: probe rows in the target's pass, evaluated after it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.drafters.base import Drafter
from engine.parts.prompt_tokens import MOST_ROWS, PromptTokens
from engine.sampling import display_distribution
from engine.target.language_model import LanguageModel
from engine.target.seen import Probes
from engine.tree import ROOT, DraftTree


class PromptedDrafter(Drafter):
    """The probes behind the last kept node predict the tokens after the next one. The next one itself is the
    target's own, from the same pass."""

    needs = {"ppd": "prompt_tokens"}
    uses_target = True

    def __init__(self, settings, target: LanguageModel, tokens: PromptTokens) -> None:
        super().__init__(settings)
        self.target, self.prompt_tokens = target, tokens

    @classmethod
    def build(cls, settings, models):
        return cls(settings, models.target, models.part("ppd"))

    @classmethod
    def kinds(cls, sampling):
        return frozenset({"one_hot"})

    def begin(self, start):
        super().begin(start)
        self._marginals: Tensor | None = None  # [K, V] of the next draft's places, on the host
        self._first: dict[int, int] = {}  # node with probes -> the first of them
        self._committed = len(start.prompt)

    def observe(self, kept):
        last = kept.path[-1] if kept.path else ROOT
        first = self._first.get(last)
        self._marginals = None
        self._committed = kept.position + len(kept.tokens)
        if kept.probes is not None and first is not None:
            rows = kept.probes[first : first + len(self.prompt_tokens)]
            logits = self.prompt_tokens.logits(rows)
            self._marginals = display_distribution(logits, self.sampling).cpu()

    def _laws(self, context: Sequence[int]) -> Tensor:
        """[k, V]: of the next k places, as far as they were predicted. Forced tokens, which stand at the end of the
        context, fill the first of the predicted places."""
        if self._marginals is None:
            return torch.zeros(0, self.target.vocab_size)
        return self._marginals[len(context) - self._committed :]

    def _ask_behind(self, tree: DraftTree, nodes: Sequence[int], context: Sequence[int]) -> None:
        """Put prompt tokens behind these nodes, which may be ROOT, as far as they fit into the pass and into the
        target's context. Nodes that come first go before the others."""
        tokens, parents = self.prompt_tokens, []
        deepest = self.target.max_context - len(context) - tokens.places
        fitting = [node for node in nodes if len(tree.path(node)) <= deepest]
        fitting = fitting[: MOST_ROWS // len(tokens)]
        self._first = {}
        for node in fitting:
            self._first[node] = first = len(parents)
            for row in range(len(tokens)):
                seen = tokens.seen(row)
                parents.append(node if seen is None else len(tree) + first + seen)
        if fitting:
            tree.probes = Probes(tokens.rows.repeat(len(fitting), 1), parents)


def sure_tokens(marginals: Tensor) -> list[tuple[int, float]]:
    """The likeliest token of each place of [K, V], and its probability."""
    best = marginals.max(-1)
    return list(zip(best.indices.tolist(), best.values.tolist(), strict=True))
