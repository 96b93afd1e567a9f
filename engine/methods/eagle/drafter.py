"""EAGLE, EAGLE-2 and EAGLE-3: a cell drafts a tree from the target's hidden states
(``engine.methods.shared.cell_tree``)."""

from engine.core.arm import Arm
from engine.methods.shared.cell_tree import CellTree


class EagleDrafter(CellTree):
    key = "eagle"
    title = "Feature draft, EAGLE"
    summary = (
        "A small cell predicts the target's next features; its most confident paths form a tree."
    )
    arm = Arm((2, 3, 4, 8), 0.6, start=0.05, token=0.06, catch_up=0.003)
