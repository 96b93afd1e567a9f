"""DySpec: a draft tree that always grows at the position which verification is most likely to reach
(``engine.methods.shared.grown_tree``)."""

from engine.methods.shared.grown_tree import GrownTree


class DySpecDrafter(GrownTree):
    key = "dyspec"
    title = "Tree, DySpec"
    summary = "A draft model grows a tree, always at the open place whose token is likeliest to be accepted."
