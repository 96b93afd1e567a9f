"""The time of a pass on a machine of which two figures of its data sheet are known.

Williams, Waterman and Patterson, Roofline: An Insightful Visual Performance Model (2009). A pass reads all weights
once, and computes a multiplication and an addition with each weight for each row. Keys and values, launches and the
host are left out, so no real pass is as fast.
"""

BYTES = 2
"""Bytes of a parameter, in the 16-bit numbers for which data sheets give the arithmetic."""


def pass_milliseconds(parameters: float, rows: float, bandwidth: float, arithmetic: float) -> float:
    """The milliseconds of a pass. bandwidth: gigabytes per second from memory. arithmetic: billions of operations per
    second."""
    reading = BYTES * parameters / (bandwidth * 1e6)
    return max(reading, 2 * parameters * rows / (arithmetic * 1e6))
