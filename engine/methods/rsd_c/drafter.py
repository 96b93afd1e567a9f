"""RSD-C: every node of a level has the same number of different children (``engine.methods.shared.levels``)."""

from engine.methods.shared.levels import DrawnLevels


class RSDConstant(DrawnLevels):
    key = "rsd_c"
    title = "Tree, RSD-C"
    summary = "A draft model draws different siblings under every node, a fixed number a level."
