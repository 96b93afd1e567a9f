"""Draft trees whose shape is chosen before any token is drafted.

A shape lists nodes. For each node it gives the parent and a rank: rank 0 stands for the likeliest token after the
parent, rank 1 for the second likeliest, and so on.
"""

import heapq
from functools import lru_cache

from torch import Tensor

from engine.core.tree import ROOT, DraftTree

Costs = tuple[tuple[float, ...], ...]
Shape = tuple[tuple[int, int], ...]


@lru_cache(256)
def cheapest_shape(costs: Costs, budget: int) -> Shape:
    """Return the ``budget`` cheapest nodes of a tree in breadth-first order, each as (index of its parent or -1, rank).

    costs[level][rank]: the cost that a node adds to the cost of its parent; it must not be negative. A node is chosen
    only after its parent, and after its sibling of the next lower rank. Among equal costs, the node is chosen whose
    path, as a list of ranks, sorts first.
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


def best_first_tree(marginals: Tensor, budget: int) -> DraftTree:
    """Return the tree of the ``budget`` likeliest prefixes under independent marginals [L, V] of L positions, parents
    before children.

    Ties between equally likely prefixes are broken in this order: the shorter prefix, the prefix whose parent was
    chosen earlier, the prefix whose last token has the lower rank. Equally likely tokens are ranked by ``topk`` on the
    device that holds the marginals.
    """
    values, tokens = marginals.topk(min(budget, marginals.shape[-1]), dim=-1)
    values, tokens, marginals = values.tolist(), tokens.tolist(), marginals.cpu()
    tree, filled = DraftTree(), [0] * len(values)  # nodes on each level
    # (-probability of the prefix, depth, parent's place on its level, rank, parent's node, parent's probability)
    heap = [(-values[0][0], 0, 0, 0, ROOT, 1.0)]
    while heap and len(tree) < budget:
        negative, depth, place, rank, parent, above = heapq.heappop(heap)
        if negative == 0:
            break  # only impossible paths are left
        source = f"block {depth + 1}"
        node = tree.draw(parent, tokens[depth][rank], "one_hot", marginals[depth], source)
        if rank + 1 < len(values[depth]):
            sibling = -above * values[depth][rank + 1]
            heapq.heappush(heap, (sibling, depth, place, rank + 1, parent, above))
        if depth + 1 < len(values):
            below = negative * values[depth + 1][0]
            heapq.heappush(heap, (below, depth + 1, filled[depth], 0, node, -negative))
        filled[depth] += 1
    return tree
