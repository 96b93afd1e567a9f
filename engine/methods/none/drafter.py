"""Plain decoding: nothing is drafted, the target writes one token a step."""

from engine.core.drafter import Drafter
from engine.core.tree import DraftTree


class NoDrafter(Drafter):
    key = "none"
    title = "Plain decoding"
    family, shape = "none", "chain"
    summary = "Plain decoding: the target writes one token in each pass."
    draw_kinds = ()

    def propose(self, context, max_depth):
        return DraftTree()
