"""Every kernel compiles for Ampere and Hopper on a machine without a GPU.

`python -m engine.kernels.compiled` prints the table of registers, stack and shared memory.
"""

import pytest

pytest.importorskip("triton")

from engine.kernels.compiled import measure, table
from engine.kernels.hardware import KNOWN
from engine.kernels.specimens import SPECIMENS

# One specimen a kernel on Ampere, for Hopper is the machine at hand more often.
ONE_EACH = (
    "llama-8b, 9 rows",
    "llama-8b, 9 rows, fp32",
    "rejection",
    "commit, 16 bits",
    "race, top-k, top-p, Philox",
    "n-gram",
    "head, 1 row",
)
HOPPER = (
    *ONE_EACH,
    "llama-8b, 64 rows",
    "gemma2, 17 rows, window, cap",
    "greedy",
    "sampler-match",
)
MOST_STACK = 64  # bytes a thread; more would be a spill in a loop


@pytest.mark.parametrize(("architecture", "labels"), [(80, ONE_EACH), (90, HOPPER)])
def test_kernels_compile_without_spilling(architecture, labels, capsys):
    rows = measure(labels, architecture)
    with capsys.disabled():  # the counts belong into the log of a good run, too
        print("\n" + table(rows))
    for label, used in rows:
        assert used.shared <= KNOWN[architecture].shared, label
        if used.registers is not None:
            assert used.registers <= 255
            assert used.stack <= MOST_STACK, f"{label} spills"


def test_the_specimens_launch_every_kernel():
    assert set(HOPPER) <= set(SPECIMENS)
