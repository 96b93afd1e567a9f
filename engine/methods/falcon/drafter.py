"""Several tokens per draft pass: a cell predicts the next block of features from the last block.

Falcon (Gao et al., 2025) drafts features semi-autoregressively; see ``engine.methods.falcon.part``. Given the text
before the block, the tokens of a block are independent of each other, so the likeliest tokens at its positions form a
tree. The cell then runs over the most confident paths through the whole block, all in one pass, and drafts a further
block after each of these paths.

The paper's tree has one shape for every step. Here the tree grows by joint confidence and is re-ranked, as in EAGLE-2
(``engine.methods.shared.eagle_tree``). Nodes are picked, never drawn, and judged one-hot, so any shape is exact.
Nothing is drafted after tokens that a constraint forces, or while the text is shorter than a block.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.core.constraint import masked
from engine.core.drafter import tree_size
from engine.core.finite import refuse_nan
from engine.core.options import whole
from engine.core.sampling import display_distribution
from engine.core.transfer import to_device
from engine.core.tree import ROOT, DraftTree
from engine.methods.falcon.falcon_context import FalconContext
from engine.methods.shared.cell_tree import CellTree, Drafted


class FalconDrafter(CellTree):
    key = "falcon"
    title = "Blocks of features, Falcon"
    summary = "A small cell predicts the target's features, a block of tokens per pass."
    needs = {"falcon": "falcon"}
    options = (
        tree_size(256, "nodes"),
        whole("passes", 2, 1, 8, "Blocks").meaning("Blocks drafted one after another."),
        whole("top_k", 4, 1, 32, "Width").meaning(
            "Candidates below each node, and paths of each block that the cell reads."
        ),
    )
    trial = {"nodes": 5, "passes": 2, "top_k": 2}

    def expect(self, coming):
        """Do nothing, because this drafter's passes are not compiled."""

    def _open(self):
        self._context = FalconContext(self.cell)
        self._passes = 0
        self._waiting: list[Tensor] = []

    def _learn(self, features):
        if features is not None and len(features):
            self._waiting.append(features)

    def _fused(self, features):
        return features

    def passes(self):
        return {"falcon": self._passes}

    @torch.no_grad()
    def propose(self, context, max_depth):
        self._drafted = None
        states = self._catch_up(context)
        forced = len(context) - 1 - self._context.length
        if states is None or forced:
            return DraftTree()
        self._text, count = tuple(context), self.settings["nodes"]
        levels = min(self.settings["passes"] * self.cell.block_size, max_depth, count)
        return self._best(self._grown(states, count, levels), count)

    def _catch_up(self, context: Sequence[int]) -> Tensor | None:
        """Run the cell over the tokens committed since the last call. Returns the states [k, H] of the next block, or
        None while the text is shorter than a block."""
        if self._waiting:
            states = torch.cat(self._waiting)
            begin = self._context.length + 1
            tokens = context[begin : begin + len(states)]
            self._waiting, self._passes = [], self._passes + 1
            self._ahead = self._context.read(states, self._embedded(tokens))
        return self._ahead if self._context.length else None

    def _grown(self, states: Tensor, count: int, levels: int) -> _Blocks:
        """Draft all candidates that a tree of ``count`` nodes and ``levels`` levels may contain. states: [k, H], the
        states of the block after the text."""
        size, width = self.cell.block_size, min(self.settings["top_k"], count)
        blocks, level = _Blocks(states), [ROOT]
        candidates = blocks.candidates
        for depth in range(levels):
            if depth and depth % size == 0:  # the last level completed blocks
                self._read(blocks, level, depth // size - 1)
            q = self._laws(
                blocks.states_at(level, depth % size), [candidates.path(place) for place in level]
            )
            chances, tokens = q.topk(min(width, q.shape[-1]))
            refuse_nan(chances, "The block drafter")
            blocks.add(level, tokens.tolist(), chances.tolist(), q.cpu())
            level = candidates.worth_reading(width, count)
            if not level:
                break
        return blocks

    def _read(self, blocks: _Blocks, level: list[int], depth: int) -> None:
        """Run the cell over the blocks that end at these candidates, in one pass. depth: how many drafted blocks lie
        between the text and each of these blocks."""
        size, paths = self.cell.block_size, map(blocks.candidates.path, level)
        embedded = self._embedded([token for path in paths for token in path[-size:]])
        embedded = embedded.unflatten(0, (len(level), size))
        states, parents, visible = blocks.to_read(level)
        self._passes += 1
        blocks.begin(level, self._context.grow(states, embedded, parents, depth, visible))

    def _laws(self, states: Tensor, paths: Sequence[Sequence[int]]) -> Tensor:
        """Return q [R, V] after the states [R, H]. paths: the drafted tokens that lead to each state."""
        logits = self.target.head(states)
        constraint = self.start.constraint
        if constraint is not None:
            begin = len(self.start.prompt) + constraint.committed
            written = self._text[begin:]
            logits = torch.stack(
                [
                    masked(row, constraint.allowed((*written, *path)))
                    for row, path in zip(logits, paths, strict=True)
                ]
            )
        return display_distribution(logits, self.sampling)

    def _embedded(self, tokens: Sequence[int]) -> Tensor:
        inputs = torch.tensor(self.target.readable(tokens))
        return self.target.embed(to_device(inputs, self.target.device))


class _Blocks(Drafted):
    """The candidates of one step, and the blocks that contain them.

    A place is ROOT or the number of a candidate. A block is named by the place after which its tokens stand. states:
    [k, H] for each block; the block at ROOT is the one after the text.
    """

    source = "block draft"

    def __init__(self, states: Tensor) -> None:
        super().__init__(states)
        self._block = {ROOT: ROOT}  # for each place, the block of the candidates after it
        self._before: dict[int, int] = {}  # for each block, the block before it

    def state_of(self, place: int) -> Tensor | None:
        """Return the drafted state [H] that serves as the feature at this candidate's token, or, for ROOT, at the last
        token of the text. None if the candidate is the last token of its block and the block after it was not
        drafted."""
        block, depths = self._block[place], [*self.candidates.depths, 0]  # [-1] is that of ROOT
        states, inside = self.states[block], depths[place] - depths[block]
        return states[inside] if inside < len(states) else None

    def states_at(self, level: Sequence[int], place_in_block: int) -> Tensor:
        """Return the states [R, H] that predict the tokens after these places."""
        return torch.stack([self.states[self._block[node]][place_in_block] for node in level])

    def add(self, level: Sequence[int], tokens, chances, laws: Tensor) -> None:
        """Add children of these places, as ``Candidates.add`` does. laws: q [R, V] after each place."""
        first = len(self.candidates)
        self.laws |= zip(level, laws, strict=True)
        self.candidates.add(level, tokens, chances)
        for place in range(first, len(self.candidates)):
            self._block[place] = self._block[self.candidates.parents[place]]

    def to_read(self, level: Sequence[int]) -> tuple[Tensor, list[int], Tensor]:
        """Return three inputs of the cell for the B blocks whose last tokens are these candidates: the states of the
        blocks, [B, k, H]; for each block, the number of the block before it; and bool [B, S + B], which blocks each of
        them attends to. S blocks were given to the cell before; then come these B."""
        number = {place: row for row, place in enumerate([*self.candidates.read, *level])}
        before = self._before | {place: self._block[place] for place in level}
        visible = torch.zeros(len(level), len(number), dtype=torch.bool)
        for row, place in enumerate(level):
            while place != ROOT:
                visible[row, number[place]] = True
                place = before[place]
        states = torch.stack([self.states[self._block[place]] for place in level])
        return states, [number.get(before[place], ROOT) for place in level], visible

    def begin(self, level: list[int], states: Tensor) -> None:
        """Add the new blocks that follow these places, once the cell has run over the blocks that end there. states:
        [B, k, H] of the new blocks."""
        for place, ahead in zip(level, states, strict=True):
            self._before[place], self._block[place] = self._block[place], place
            self.states[place] = ahead
        self.candidates.read += level
