"""The likeliest prefixes under independent marginals, as a tree (DDTree: Ringel, 2026)."""

import heapq

from torch import Tensor

from engine.core.tree import ROOT, DraftTree


def best_first_tree(marginals: Tensor, budget: int) -> DraftTree:
    """The ``budget`` likeliest prefixes under independent marginals [L, V], parents first.

    Of equally likely prefixes, the shallower comes first, then the one with the earlier parent, then the one of the
    lower rank. The device that holds the marginals decides which of equally likely tokens ranks first.
    """
    values, tokens = marginals.topk(min(budget, marginals.shape[-1]), dim=-1)
    values, tokens, marginals = values.tolist(), tokens.tolist(), marginals.cpu()
    tree, filled = DraftTree(), [0] * len(values)  # nodes on each level
    # (-probability of the prefix, depth, place of the parent on its level, rank; parent, its probability)
    heap = [(-values[0][0], 0, 0, 0, ROOT, 1.0)]
    while heap and len(tree) < budget:
        negative, depth, place, rank, parent, above = heapq.heappop(heap)
        if negative == 0:
            break  # only impossible paths are left
        source = f"block {depth + 1}"
        node = tree.draw(parent, tokens[depth][rank], "one_hot", marginals[depth], source)
        if rank + 1 < len(values[depth]):
            other = -above * values[depth][rank + 1]
            heapq.heappush(heap, (other, depth, place, rank + 1, parent, above))
        if depth + 1 < len(values):
            below = negative * values[depth + 1][0]
            heapq.heappush(heap, (below, depth + 1, filled[depth], 0, node, -negative))
        filled[depth] += 1
    return tree
