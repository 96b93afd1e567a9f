"""Predicts the time of a pass on a machine, from two numbers of its data sheet: memory bandwidth, and arithmetic
operations per second.

Williams, Waterman and Patterson, Roofline: An Insightful Visual Performance Model (2009). A pass loads all weights
once, and computes one multiplication and one addition with each weight for each row (token position). Keys and values,
kernel launches and the work of the host are left out, so no real pass is as fast.
"""

BYTES = 2
"""The bytes of a parameter in 16-bit numbers, the type for which data sheets state the arithmetic."""


def pass_milliseconds(parameters: float, rows: float, bandwidth: float, arithmetic: float) -> float:
    """The milliseconds of a pass over ``rows`` rows by a model with this number of parameters. bandwidth: gigabytes
    per second from memory. arithmetic: billions of operations per second."""
    reading = BYTES * parameters / (bandwidth * 1e6)
    return max(reading, 2 * parameters * rows / (arithmetic * 1e6))
