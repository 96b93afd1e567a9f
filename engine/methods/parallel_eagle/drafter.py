"""An EAGLE cell that drafts all tokens in one pass.

P-EAGLE (Hui et al., "P-EAGLE: Parallel-Drafting EAGLE with Scalable Training", 2026). The input of the cell is one pair
of the target's feature and a token for each position of the text, and then further pairs for positions where nothing is
written yet. Each of these further pairs consists of a learned feature and a mask token, and gives the law of one of the
next tokens. The laws do not depend on which tokens are chosen from the other laws. EAGLE runs its cell once for every
level of the draft; this method runs its cell once in a step.

The likeliest paths through the laws form the tree, as in ``ddtree``. Nothing is drawn: nodes are judged one-hot.
"""

from engine.core.drafter import Drafter, tree_size
from engine.core.exhibits import Later
from engine.core.options import whole
from engine.core.tree import DraftTree
from engine.methods.shared.block_walk import places_shown
from engine.methods.shared.eagle_context import context_of
from engine.methods.shared.eagle_reader import EagleReader
from engine.methods.shared.fixed_shape import best_first_tree


class ParallelEagleDrafter(Drafter):
    key = "parallel_eagle"
    title = "Feature draft in one pass, P-EAGLE"
    family = "heads"
    summary = "A feature drafter reads masks behind the text and drafts all tokens in one pass."
    draw_kinds = ("one_hot",)
    needs = {"parallel_eagle": "parallel_eagle"}
    options = (
        whole("length", 8, 1, 16).meaning("Longest branch: places that are filled in the pass."),
        tree_size(256, "nodes"),
    )
    size_option, usual_size = "nodes", 11
    trial = {"nodes": 5, "length": 3}

    def __init__(self, settings, cell, target) -> None:
        super().__init__(settings)
        self.cell, self.target = cell, target
        self.feature_layers = cell.config.layers_of(target.layers)

    @classmethod
    def build(cls, settings, models):
        return cls(settings, models.part("parallel_eagle"), models.target)

    def expect(self, coming):
        context_of(self.cell, self.target).expect(coming)

    def begin(self, start):
        super().begin(start)
        self._reader = EagleReader(self.cell, self.target, self.sampling)
        self._reader.learn(start.features)

    def propose(self, context, max_depth):
        length = min(self.settings["length"], self.settings["nodes"], max_depth)
        marginals = self._reader.at_once(context, length)
        if marginals is None:  # a prompt of one token: the target has read nothing yet
            return DraftTree()
        tree = best_first_tree(marginals, self.settings["nodes"])
        likeliest = marginals.argmax(-1).tolist()
        tree.exhibits.append(Later(lambda: places_shown(marginals, likeliest)))
        return tree

    def observe(self, kept):
        self._reader.learn(kept.features)

    def passes(self):
        return {"parallel_eagle": self._reader.passes}
