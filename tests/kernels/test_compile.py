"""Every kernel compiles for every GPU that is supported, on a machine without one.

`python -m engine.fast.kernels.compiled` prints the table of registers, stack and shared memory.
"""

import pytest

pytest.importorskip("triton")

from engine.fast.kernels.compiled import measure, table
from engine.fast.kernels.hardware import KNOWN
from tests.grids import some

# Every kernel on the GPU that most people rent; on other GPUs, those that need the most registers
# or shared memory. The plans for sm_89 are those for sm_86.
COMPILED = {
    80: ("llama-8b, 16 rows, fp32", "rejection"),
    86: ("llama-8b, 64 rows",),
    90: (
        "llama-8b, 16 rows",
        "llama-8b, 64 rows",
        "gemma2, 16 rows, window, cap",
        "greedy",
        "rejection",
        "sampler-match",
        "commit, 16 bits",
        "truncation",
        "noise",
    ),
    120: ("llama-8b, 64 rows", "gemma2, 16 rows, window, cap"),
}
MOST_STACK = 32  # bytes a thread; more would be a spill in a loop


@pytest.mark.parametrize("architecture", some(COMPILED, (90).__eq__))
def test_kernels_compile_without_spilling(architecture, capsys):
    rows = measure(COMPILED[architecture], architecture)
    with capsys.disabled():  # the log of a passing run shows the counts as well
        print("\n" + table(rows))
    for label, used in rows:
        assert used.shared <= KNOWN[architecture].shared, label
        if used.registers is not None:
            assert used.registers <= 255
            assert used.stack <= MOST_STACK, f"{label} spills"
