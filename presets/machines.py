"""The machines of the roofline, with the peak figures of their data sheets."""

import tomllib
from functools import cache
from pathlib import Path

MACHINES = Path(__file__).parent / "lessons" / "machines.toml"


@cache
def machines() -> list[dict]:
    """Return the machines in MACHINES, each {"name", "bandwidth" in GB/s, "arithmetic" in GFLOP/s, "sheet"}."""
    return tomllib.loads(MACHINES.read_text("utf-8"))["machine"]
