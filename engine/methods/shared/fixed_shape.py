"""Trees of fixed shape: before any token is known, the shape settles which ranks of candidates are tried where."""

import heapq
from functools import lru_cache

from engine.core.tree import ROOT

Costs = tuple[tuple[float, ...], ...]
Shape = tuple[tuple[int, int], ...]


@lru_cache(256)
def cheapest_shape(costs: Costs, budget: int) -> Shape:
    """The ``budget`` cheapest places in breadth-first order, each (index of its parent's place or -1, rank).

    costs: by level and rank, the cost that a place adds to its parent's; none is negative. A place is
    taken only after its parent and after its sibling of the rank before; ties go to the place whose
    list of ranks sorts first.
    """
    chosen: list[tuple[int, ...]] = []
    waiting: list[tuple[float, tuple[int, ...]]] = []

    def offer(path: tuple[int, ...]) -> None:
        depth, rank = len(path), path[-1]
        if depth <= len(costs) and rank < len(costs[depth - 1]):
            cost = sum(costs[level][rank] for level, rank in enumerate(path))
            heapq.heappush(waiting, (round(cost, 9), path))  # rounding differences do not count

    offer((0,))
    while waiting and len(chosen) < budget:
        _, path = heapq.heappop(waiting)
        chosen.append(path)
        offer((*path[:-1], path[-1] + 1))
        offer((*path, 0))
    chosen.sort(key=lambda path: (len(path), path))
    place_of = {(): ROOT} | {path: place for place, path in enumerate(chosen)}
    return tuple((place_of[path[:-1]], path[-1]) for path in chosen)
