"""A chain from a nested draft model: each token comes from the first exit at which the model is confident enough.

Kavehzadeh et al., S2D: Sorted Speculative Decoding for More Efficient Deployment of Nested Large Language Models
(2024). The first layers of the draft model, up to an exit, form a smaller draft model: a sub-model. All sub-models
share the final norm and the head, and were trained together (sorted fine-tuning). Each drafted token is first run
through the smallest sub-model only. If the likeliest next token then has less probability than a threshold, the token
is run on to the next exit. Earlier tokens that stopped at the same exit are run on with it, because the deeper layers
need the keys and values of all earlier tokens.

The exit is chosen by distributions, never by a drawn token, so q is the true law of the drafted token. At the beginning
of the next step all layers are run over the accepted tokens and the target's own token. Therefore the first token of a
draft always comes from the whole draft model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from engine.core.drafter import Kept
from engine.core.exhibits import Later, Table, Token
from engine.core.options import number, whole
from engine.core.tree import ROOT, DraftTree
from engine.methods.shared.draft_model import STOP, DraftModelDrafter, DraftReader
from engine.model.layers import Layers

if TYPE_CHECKING:
    from engine.methods.s2d.part import NestedDraft


class NestedReader(DraftReader):
    """Runs a nested draft model over one token after another, through as many layers as the caller requests. exits: the
    numbers of layers after which a token may stop."""

    def begin(self, exits: Sequence[int]) -> None:
        self._exits = exits

    def read(self, context: Sequence[int]) -> Tensor:
        self._waiting: list[list[Tensor]] = [[] for _ in self._exits]
        self._session.drop()  # rows that not all layers have read
        return super().read(context)

    def shallow(self, node: int, token: int, parent: int) -> Tensor:
        """Run the model over a token up to the first exit; returns q [V] after the token. The token must follow the
        token of the previous call."""
        self.passes += 1
        self._node, self._level = node, 0
        if self._constraint is not None:
            self._path_of[node] = (*self._path_of[parent], token)
        return self._left(
            self._session.through([token], self._layers(None), [self._session.rows - 1])
        )

    @property
    def depth(self) -> int:
        """The number of layers that have been run over the last token."""
        return self._exits[self._level]

    @property
    def deepest(self) -> bool:
        return self._level + 1 == len(self._exits)

    def deeper(self) -> Tensor:
        """Run the last token on to the next exit, together with all tokens that stopped at its present exit. Returns q
        [V] after the last token."""
        self.passes += 1
        rows = torch.cat(self._waiting[self._level])
        self._waiting[self._level] = []
        layers = self._layers(self._level)
        self._level += 1
        return self._left(self._session.through(rows, layers))

    def _layers(self, level: int | None) -> Layers:
        """Return the layers between exit number ``level`` and the next exit; if ``level`` is None, the layers from the
        first layer to the first exit."""
        following = 0 if level is None else level + 1
        last = following + 1 == len(self._exits)
        first = 0 if level is None else self._exits[level]
        return Layers(first=first, stop=None if last else self._exits[following])

    def _left(self, states: Tensor) -> Tensor:
        """Store the hidden states [R, H] after the present exit. Returns q [V] after the last of these R rows."""
        self._waiting[self._level].append(states)
        last = states[-1:] if self.deepest else self._model.norm(states[-1:])
        logits = self._spread(self._model.head(last)[0])
        return self._q(
            logits if self._constraint is None else self._constrained(logits, self._node)
        )

    def keep(self, path: Sequence[int]) -> None:
        """Drop the rows of all drafted nodes, accepted or not, because not all layers were run over them."""
        self._session.drop()


class SortedDrafter(DraftModelDrafter):
    key = "s2d"
    title = "Sorted speculative decoding"
    family, shape = "chain", "chain"
    reader_class = NestedReader
    summary = (
        "A nested draft model; each token comes from the first of its exits that is sure enough."
    )
    options = (
        whole("length", 4, 1, 32).meaning("Most tokens drafted in a step."),
        number("confidence", 0.5, 0.0, 1.0, "Confidence").meaning(
            "Go on to the next deeper exit where the likeliest token has less probability than this."
        ),
        STOP,
    )
    needs = {"s2d": "nested_draft"}
    trial = {"length": 3, "confidence": 0.5}

    def __init__(self, settings, part: NestedDraft, vocabulary: int) -> None:
        super().__init__(settings, part.model, vocabulary)
        self.exits = part.exits

    @classmethod
    def build(cls, settings, models):
        part = models.part("s2d")
        part.model.prepare_stretches(part.exits[:-1], 1)
        return cls(settings, part, models.target.vocab_size)

    def begin(self, start):
        super().begin(start)
        self._depths: Counter[int] = Counter()
        self._seen: list[list[float | None]] = []

    def _reading(self, model):
        reader = super()._reading(model)
        reader.begin(self.exits)
        return reader

    def propose(self, context, max_depth):
        tree, parent, reader = DraftTree(), ROOT, self._reader
        length = min(self.settings["length"], max_depth)
        drawn = None if self.sampling.greedy else self.chance.uniforms(length)
        q = reader.read(context)
        self._seen = [[None] * (len(self.exits) - 1) + [float(q.max())]]
        for place in range(length):
            kind, token = self._pick(q, None if drawn is None else drawn[place])
            parent = tree.draw(parent, token, kind, q, "draft model")
            if place + 1 == length or not self._likely(tree):
                break
            q = self._sure_enough(parent, token, tree.parents[parent])
        return tree

    def _sure_enough(self, node: int, token: int, parent: int) -> Tensor:
        """Return q after this token, from the first exit at which the likeliest next token reaches the confidence, or
        else from the last exit."""
        q = self._reader.shallow(node, token, parent)
        seen = [float(q.max())]
        while seen[-1] < self.settings["confidence"] and not self._reader.deepest:
            q = self._reader.deeper()
            seen.append(float(q.max()))
        self._depths[self._reader.depth] += 1
        self._seen.append(seen + [None] * (len(self.exits) - len(seen)))
        return q

    def observe(self, kept: Kept):
        super().observe(kept)
        rows = list(zip(list(kept.tree.tokens), self._seen, strict=False))
        depths, self._seen = Counter(self._depths), []
        if not rows:
            return
        kept.tree.exhibits.append(Later(lambda: self._shown(rows, depths)))

    def _shown(self, rows: list, depths: Counter) -> Table:
        counted = ", ".join(f"{depths[layer]} from {layer}" for layer in self.exits)
        return Table(
            "How sure each exit was",
            ["token", *(f"{layer} layer{'s' * (layer > 1)}" for layer in self.exits)],
            [
                [Token(token), *(p if p is None else round(p, 3) for p in seen)]
                for token, seen in rows
            ],
            note=f"So far: {counted} layers. The first token of each draft comes from all layers and is not counted.",
        )
