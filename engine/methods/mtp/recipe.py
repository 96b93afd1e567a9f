"""Trains a multi-token-prediction layer for a target that has none: one layer like the target's, which begins as a copy
of the target's last layer.

It learns the target's distribution over several steps of a draft in which its own states are fed back; each step has
0.8 times the weight of the step before. FastMTP and vLLM's speculators train such layers in this way, and the files are
in the layout of speculators. A layer trained for one step alone drafts its first token better and its later tokens
worse.
"""

from engine.core.options import whole
from engine.methods.mtp.mtp_layout import read_mtp, write_mtp
from engine.methods.shared.eagle_cell import EagleCell
from engine.training.students.cell_student import CellStudent


class MtpStudent(CellStudent):
    key = "mtp"
    summary = "a multi-token-prediction layer like those of DeepSeek, GLM and Qwen"
    options = (whole("steps", 3, 1, 8).meaning("Steps of a draft that it learns."),)
    read = staticmethod(read_mtp)

    def __init__(self, target, settings, begun: EagleCell | None = None) -> None:
        super().__init__(target, {**settings, "layout": "mtp"}, begun)

    def save(self, part, folder, about) -> None:
        write_mtp(part, folder, about)


STUDENT = MtpStudent
