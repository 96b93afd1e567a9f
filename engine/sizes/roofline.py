"""The time of a pass on a machine that is known by two figures of its data sheet.

Williams, Waterman and Patterson, Roofline: An Insightful Visual Performance Model (2009). A pass reads all weights once, and
computes a multiplication and an addition with each of them for each row. Keys and values, launches and the host are left out, so
no real pass is as fast.
"""

BYTES = 2
"""Of a parameter, in the 16-bit numbers of which data sheets tell the arithmetic."""


def pass_milliseconds(parameters: float, rows: float, bandwidth: float, arithmetic: float) -> float:
    """bandwidth: gigabytes a second from memory. arithmetic: billions of operations a second."""
    reading = BYTES * parameters / (bandwidth * 1e6)
    return max(reading, 2 * parameters * rows / (arithmetic * 1e6))
