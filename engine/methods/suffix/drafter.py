"""Copies the tokens that followed the longest earlier match of the text's end, in this text or in earlier ones
(``engine.methods.shared.suffix_copies``)."""

from engine.core.arm import Arm
from engine.methods.shared.suffix_copies import SuffixCopies


class SuffixDrafter(SuffixCopies):
    key = "suffix"
    title = "Suffix decoding"
    summary = (
        "Copies the most frequent continuations of the text's end, from this and earlier texts."
    )
    arm = Arm((1, 2, 3, 4, 8, 16), 0.6)
