"""The continuations of a match in a datastore as one tree, weighed by a draft model."""

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from torch import Tensor

from engine.core.tree import ROOT, DraftTree


@dataclass
class Retrieved:
    """A tree of retrieved continuations. tokens, parents, times: one entry per node, parents before children; ``times``
    counts the continuations that go through the node. laws: the draft model's law [V] of the next token, after the root
    and after each node with children. q: for each node, the probability of the path down to it."""

    tokens: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    laws: dict[int, Tensor] = field(default_factory=dict)
    q: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def inner(self) -> list[int]:
        """The nodes that have children."""
        return sorted(set(self.parents) - {ROOT})

    def weigh(self, laws: dict[int, Tensor]) -> None:
        """Fill in ``q`` by the draft model's laws after the root and after each node with children."""
        self.laws = laws
        for token, parent in zip(self.tokens, self.parents, strict=True):
            above = 1.0 if parent == ROOT else self.q[parent]
            self.q.append(above * float(laws[parent][token]))

    def pruned(self, least: float, most: int) -> list[int]:
        """Return the ``most`` likeliest nodes among those with q of at least ``least``, parents before children."""
        likely = [node for node, q in enumerate(self.q) if q >= least]
        return sorted(sorted(likely, key=lambda node: (-self.q[node], node))[:most])

    def branches(self, nodes: Sequence[int], source: str) -> DraftTree:
        """Return these nodes as a draft tree, parents before children. The nodes are judged one-hot; the draft model's
        q is attached for display."""
        tree, place_of = DraftTree(), {ROOT: ROOT}
        for node in nodes:
            parent = self.parents[node]
            place_of[node] = tree.draw(
                place_of[parent], self.tokens[node], law=self.laws[parent], source=source
            )
        return tree


def frequent(continuations: Iterable[Sequence[int]], most: int) -> Retrieved:
    """Return a tree of at most ``most`` nodes. If the continuations have more nodes together, those are taken through
    which the most continuations go."""
    paths = Counter(tuple(path) for path in continuations)
    times: Counter[tuple[int, ...]] = Counter()
    for path, count in paths.items():
        for length in range(1, len(path) + 1):
            times[path[:length]] += count
    below: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for path in times:
        below.setdefault(path[:-1], []).append(path)
    tree, node_of = Retrieved(), {(): ROOT}
    open_places = [(-times[path], len(path), path) for path in below.get((), ())]
    heapq.heapify(open_places)
    while open_places and len(tree) < most:
        count, _, path = heapq.heappop(open_places)
        node_of[path] = len(tree)
        tree.tokens.append(path[-1])
        tree.parents.append(node_of[path[:-1]])
        tree.times.append(-count)
        for longer in below.get(path, ()):
            heapq.heappush(open_places, (-times[longer], len(longer), longer))
    return tree
