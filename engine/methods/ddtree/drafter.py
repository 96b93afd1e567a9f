"""The most probable paths through a block's marginals form the tree.

DDTree (Ringel, 2026): positions of a block are independent, so the probability of a path is the product of its
marginals, and a heap yields the best paths. Nothing is drawn. The tree is judged one-hot, so it is exact whatever its
shape.
"""

from engine.core.drafter import tree_size
from engine.core.options import whole
from engine.methods.shared.block_drafter import DiffusionDrafter
from engine.methods.shared.fixed_shape import best_first_tree


class DDTreeDrafter(DiffusionDrafter):
    key = "ddtree"
    title = "Block diffusion tree, DDTree"
    summary = "A diffusion drafter fills a block in one step; its likeliest paths form a tree."
    draw_kinds = ("one_hot",)
    options = (whole("length", 7, 1, 31).meaning("Longest branch."), tree_size(256))
    size_option, usual_size = "budget", 16
    trial = {"length": 2, "budget": 4}

    def propose(self, context, max_depth):
        marginals = self._marginals(context, max_depth)
        return best_first_tree(marginals, self.settings["budget"])
