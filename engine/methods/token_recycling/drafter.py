"""Reuse the candidates that the target considered but did not write.

Token Recycling (Luo et al., Turning Trash into Treasure: Accelerating Inference of Large Language Models with Token
Recycling, 2024): after each token that it reads, every pass of the target gives the k most probable next tokens. They
are written into that token's row of an adjacency matrix, whether the token was kept or refused. The next draft is read
off the matrix: breadth first from the root, through a tree of fixed shape.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from engine.core.drafter import tree_size
from engine.core.exhibits import Gauge, Table, Token
from engine.core.memory import Store
from engine.core.options import whole
from engine.core.tree import ROOT, DraftTree
from engine.methods.shared.fixed_shape import Shape, cheapest_shape
from engine.methods.shared.remembering import RememberingDrafter

MOST_BYTES = 2_000_000
"""The most bytes of one matrix. If the vocabulary is too large for a row per token, a token without a row takes over
the row that was given out longest ago."""

LEAST_ROWS = 256
"""The least number of rows; it is more than one pass can fill."""

LEVEL = 0.6
"""The price of one more level, in the costs that decide which nodes the tree has (``static_shape``). A child of rank r,
counted from 0, costs another log2(r + 1)."""


class TokenRecyclingDrafter(RememberingDrafter):
    key = "token_recycling"
    title = "Token recycling"
    family = "retrieval"
    summary = "Drafts from the next tokens that the target considered when it last read each token."
    options = (
        tree_size(80),
        whole("depth", 6, 1, 16, "Depth", advanced=True).meaning("Longest branch."),
        whole("successors", 8, 1, 16, "Candidates", advanced=True).meaning(
            "Candidates kept for each token."
        ),
    )
    size_option, usual_size = "budget", 16
    trial = {"budget": 3, "depth": 2, "successors": 2}

    def begin(self, start):
        super().begin(start)
        width = min(self.settings["successors"], self._vocabulary)
        key = (self.key, self._target, self._vocabulary, width)
        self._successors = start.memory.store(key, lambda: SuccessorMatrix(self._vocabulary, width))

    def propose(self, context, max_depth):
        tree = DraftTree()
        depth = min(self.settings["depth"], max_depth)
        shape = static_shape(self.settings["budget"], self._successors.width, depth)
        node_of, rows = {ROOT: ROOT}, {ROOT: self._successors.row(context[-1])}
        for place, (parent, rank) in enumerate(shape):
            row = rows.get(parent, ())
            if rank < len(row):
                source = f"successor {rank + 1}"
                node_of[place] = tree.draw(node_of[parent], row[rank], source=source)
                rows[place] = self._successors.row(row[rank])
        return tree

    def observe(self, kept):
        tokens = [kept.root, *kept.tree.tokens]
        walked = [kept.root, *(kept.tree.tokens[node] for node in kept.path)]
        kept.tree.exhibits += self._exhibits(walked)
        if kept.logits is not None:
            self._successors.write(tokens, kept.logits)

    def _exhibits(self, walked: Sequence[int]) -> list[Table | Gauge]:
        """Show the matrix rows of the kept tokens, as these rows were when the tree was drafted. walked: the root and
        the kept tokens."""
        matrix = self._successors
        rows = []
        for token in walked:
            successors = [Token(successor) for successor in matrix.row(token)]
            rows.append([Token(token), *successors, *[None] * (matrix.width - len(successors))])
        columns = ["After", *(f"{rank + 1}." for rank in range(matrix.width))]
        note = "Every pass of the target replaces the rows of all tokens that it reads."
        total = f"{matrix.nbytes / 1000:,.0f} kB of at most {MOST_BYTES // 1000:,} kB"
        filled = f"{matrix.filled:,} of {matrix.vocabulary:,} tokens have successors"
        return [
            Table("Successors along the kept path", columns, rows, note=note),
            Gauge(
                "Matrix filled",
                matrix.filled * matrix.row_bytes / 1000,
                maximum=matrix.rows * matrix.row_bytes / 1000,
                unit="kB",
                note=f"{filled}; the matrix takes {total}.",
            ),
        ]


class SuccessorMatrix(Store):
    """Maps each token to its most probable successors, the most probable first, as of the target's last pass over the
    token."""

    def __init__(self, vocabulary: int, width: int, most_bytes: int = MOST_BYTES) -> None:
        """width: the number of successors per token. most_bytes: bounds the number of rows, which is never below
        LEAST_ROWS unless the vocabulary is smaller."""
        kind = torch.int16 if vocabulary <= torch.iinfo(torch.int16).max else torch.int32
        index = torch.int32
        self.vocabulary, self.width = vocabulary, width
        self.row_bytes = width * kind.itemsize
        spare = most_bytes - vocabulary * index.itemsize
        self.rows = min(vocabulary, max(LEAST_ROWS, spare // (self.row_bytes + index.itemsize)))
        self.filled = 0
        self._successors = torch.zeros(self.rows, width, dtype=kind)
        self._row_of = torch.full((vocabulary,), -1, dtype=index)
        self._token_of = torch.full((self.rows,), -1, dtype=index)
        self._oldest = 0

    @property
    def nbytes(self) -> int:
        return self._successors.nbytes + self._row_of.nbytes + self._token_of.nbytes

    def row(self, token: int) -> list[int]:
        """Return the successors of a token; empty if no pass of the target has contained the token yet."""
        place = int(self._row_of[token])
        return [] if place < 0 else self._successors[place].tolist()

    def write(self, tokens: Sequence[int], logits: Tensor) -> None:
        """Replace the rows of these tokens. logits: [R, V], row i after token i. For a token that occurs twice, its
        last row counts; in the paper, which of its rows counts depends on the order in which a GPU happens to write."""
        last = {token: row for row, token in enumerate(tokens)}
        best = logits[list(last.values())].topk(self.width).indices
        places = [self._place(token) for token in last]
        self._successors[places] = best.to(self._successors)

    def _place(self, token: int) -> int:
        """Return the number of the token's row. A token without one gets a free row, or else the row that was given out
        longest ago."""
        place = int(self._row_of[token])
        if place < 0:
            place = self._oldest
            self._oldest = (place + 1) % self.rows
            former = int(self._token_of[place])
            if former >= 0:
                self._row_of[former] = -1
            self.filled = min(self.filled + 1, self.rows)
            self._row_of[token], self._token_of[place] = place, token
        return place


def static_shape(budget: int, width: int, depth: int) -> Shape:
    """Return the nodes of a tree in breadth-first order; each is (index of its parent or -1, rank among its siblings).

    The paper's tree has 80 nodes on six levels and gives earlier candidates more children. Here a node costs LEVEL +
    log2(rank + 1) more than its parent, and the tree consists of the cheapest ``budget`` nodes. With 80 nodes, the six
    levels have 8, 21, 25, 19, 6 and 1 nodes; in the paper's tree they have 8, 21, 25, 15, 8 and 3.
    """
    level = tuple(LEVEL + math.log2(rank + 1) for rank in range(width))
    return cheapest_shape((level,) * depth, budget)
