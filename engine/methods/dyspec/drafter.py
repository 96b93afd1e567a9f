"""A tree that grows at its likeliest open place, DySpec (``engine.methods.shared.grown_tree``)."""

from engine.methods.shared.grown_tree import GrownTree


class DySpecDrafter(GrownTree):
    key = "dyspec"
    title = "Tree, DySpec"
    summary = "A draft model grows a tree, always at the open place whose token is likeliest to be accepted."
