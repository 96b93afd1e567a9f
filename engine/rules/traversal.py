"""Traversal verification: a tree is judged from its leaves to its root, so that a branch is kept as a whole.

Weng et al., Traversal Verification for Speculative Tree Decoding (2025).
"""

from collections.abc import Iterable

from engine.core.rule import Case, Judgement, Verdict
from engine.errors import UserError
from engine.rules.leaf_to_root import SENTENCES, LeafToRoot


class Traversal(LeafToRoot):
    """Judges a tree by the rule of ``LeafToRoot``. On a chain it is the same as block verification.

    The siblings under a node are drawn from one law without replacement, or fixed, or one draw beside fixed tokens.
    Several independent draws under a node are refused: equal draws share a node, and the tokens drafted below it would
    reveal how often its token was drawn.
    """

    key = "traversal"
    title = "Traversal verification"
    summary = "weighs whole branches, leaves first: a leaf can save all the tokens before it"
    shapes = frozenset({"chain", "levels"})
    sentences = {
        **SENTENCES,
        "carried.sure": "A branch is kept as a whole: one that goes on from {token} was kept, and {token} with it, without a "
        "coin of its own: accepted.",
    }
    note = "The first leaf whose coin falls below its chance is kept, and with it the whole branch up to the root."

    @classmethod
    def judges(cls, shape: str, kinds: Iterable[str]) -> bool:
        """Whether the rule judges trees of this shape. It also judges trees of one-hot draws, whatever their shape."""
        return super().judges(shape, kinds) or set(kinds) <= {"one_hot"}

    def judge(self, case: Case) -> Verdict:
        for draws in case.tree.draws.values():
            laws = [drawn.law for drawn in draws if drawn.kind == "iid"]
            if len({*laws}) < len(laws):
                raise UserError(
                    "The verifier traversal cannot judge independent draws of siblings; spectr and greedy_multipath can."
                )
        return super().judge(case)

    def above(self, node, weight, trial):
        self.show(node, weight, 1.0, None, "kept with the branch")
        return Judgement(node, "carried", None, None, 1.0, None)
