"""The block's marginals as a tree: the most probable paths first.

DDTree (Ringel, 2026): positions of a block are independent, so the probability of a path is
the product of its marginals and the best paths come out of a heap. Nothing is drawn; the tree
is judged one-hot and therefore exact whatever its shape.
"""

import heapq

from engine.drafters.dflash import DiffusionDrafter
from engine.options import Option
from engine.tree import ROOT, DraftTree


class DDTreeDrafter(DiffusionDrafter):
    key = "ddtree"
    title = "Block diffusion tree, DDTree"
    summary = "A diffusion drafter fills a block in one step; its likeliest paths form a tree."
    options = (
        Option("length", "int", 7, "Longest branch.", 1, 31),
        Option("budget", "int", 0, "Nodes of the tree (0: what pays here).", 0, 256),
    )
    size_option, usual_size = "budget", 16

    @classmethod
    def kinds(cls, sampling):
        return frozenset({"one_hot"})

    def propose(self, context, max_depth):
        marginals = self._marginals(context, max_depth)
        return best_first_tree(marginals, self.settings["budget"])


def best_first_tree(marginals, budget: int) -> DraftTree:
    """The ``budget`` likeliest prefixes under independent marginals [L, V], parents first."""
    tree = DraftTree()
    length = len(marginals)
    values, tokens = marginals.topk(min(budget, marginals.shape[-1]), dim=-1)
    values, tokens = values.tolist(), tokens.tolist()
    # (-probability of the prefix, order, parent, depth, rank, probability of the parent)
    heap = [(-values[0][0], 0, ROOT, 0, 0, 1.0)]
    order = 1
    while heap and len(tree) < budget:
        negative, _, parent, depth, rank, above = heapq.heappop(heap)
        if negative == 0:
            break  # only impossible paths are left
        source = f"block {depth + 1}"
        node = tree.child(parent, "one_hot", tokens[depth][rank], source, marginals[depth])
        if rank + 1 < len(values[depth]):
            heapq.heappush(
                heap, (-above * values[depth][rank + 1], order, parent, depth, rank + 1, above)
            )
            order += 1
        if depth + 1 < length:
            heapq.heappush(
                heap, (negative * values[depth + 1][0], order, node, depth + 1, 0, -negative)
            )
            order += 1
    return tree
