"""A chain from a nested draft: each token comes from the first of the draft's exits that is sure enough.

Kavehzadeh et al., S2D: Sorted Speculative Decoding for More Efficient Deployment of Nested Large Language Models
(2024). The sub-models share their layers, the final norm and the head, and were trained together (sorted fine-tuning).
A drafted token is read by the shallowest sub-model. If the likeliest next token is then less probable than a threshold,
the next deeper sub-model goes on from there. It also reads the rows of earlier tokens that stopped at the same exit, so
that the deeper layers have read all rows.

The exit is chosen by looking at laws, never at a drawn token, so q is the law of the token. Kept tokens are read by all
layers at the beginning of the next step, together with the target's own token. Therefore the first token of a draft
comes from the whole draft model.
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
    """Reads one token after another, each through as many layers as the caller asks for. exits: the numbers of layers
    after which reading may stop."""

    def begin(self, exits: Sequence[int]) -> None:
        self._exits = exits

    def read(self, context: Sequence[int]) -> Tensor:
        self._waiting: list[list[Tensor]] = [[] for _ in self._exits]
        self._session.drop()  # rows that not all layers have read
        return super().read(context)

    def shallow(self, node: int, token: int, parent: int) -> Tensor:
        """Read a token, a child of the token read last, up to the first exit. Returns q [V] after it."""
        self.passes += 1
        self._node, self._level = node, 0
        if self._constraint is not None:
            self._path_of[node] = (*self._path_of[parent], token)
        return self._left(
            self._session.through([token], self._layers(None), [self._session.rows - 1])
        )

    @property
    def depth(self) -> int:
        """The number of layers that have read the last token."""
        return self._exits[self._level]

    @property
    def deepest(self) -> bool:
        return self._level + 1 == len(self._exits)

    def deeper(self) -> Tensor:
        """Run the last token, and all tokens waiting at its exit, up to the next exit. Returns q [V] after the last
        token."""
        self.passes += 1
        rows = torch.cat(self._waiting[self._level])
        self._waiting[self._level] = []
        layers = self._layers(self._level)
        self._level += 1
        return self._left(self._session.through(rows, layers))

    def _layers(self, level: int | None) -> Layers:
        """Return the layers from one exit, or from the beginning if ``level`` is None, to the next exit."""
        following = 0 if level is None else level + 1
        last = following + 1 == len(self._exits)
        first = 0 if level is None else self._exits[level]
        return Layers(first=first, stop=None if last else self._exits[following])

    def _left(self, states: Tensor) -> Tensor:
        """Store the hidden states [R, H] behind an exit. Returns q [V] after the last of them."""
        self._waiting[self._level].append(states)
        last = states[-1:] if self.deepest else self._model.norm(states[-1:])
        logits = self._spread(self._model.head(last)[0])
        return self._q(
            logits if self._constraint is None else self._constrained(logits, self._node)
        )

    def keep(self, path: Sequence[int]) -> None:
        """Drop the rows of all nodes, kept or not, because not all layers have read them."""
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
        """Return q after this token from the first exit that is sure enough, or from the last exit."""
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
