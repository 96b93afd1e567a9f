"""Runs a suite that consists of parts, within a limited time. The report holds the properties of the machine, the rows
of all parts, and the names of the parts that were left out."""

import platform
from collections.abc import Callable, Iterable, Iterator, Sequence

import torch

from engine.bench.goals import Goal, goal_table
from engine.bench.gpu.costs import Ceilings, Cost
from engine.bench.gpu.timing import Deadline, ceilings, require_gpu
from engine.bench.report import Report

Part = tuple[str, Callable[[], Iterable[dict]], float]
"""A part's name, the function that measures it row by row, and the seconds that must be left to begin it."""


def measure_parts(
    suite: str,
    seconds: float,
    parts: Callable[[Ceilings, Deadline], Iterator[Part]],
    goals: Callable[[Sequence[dict]], Sequence[Goal]] = lambda rows: [],
) -> Report:
    """Measure the parts within ``seconds``, print each row as soon as it is measured, and return the report. Raises
    UserError without a GPU on which Triton runs.

    suite: its name. parts: a function from the machine's measured rates and the deadline to the parts. goals: a
    function from the rows to the goals.
    """
    require_gpu()
    torch.manual_seed(0)
    deadline, rates = Deadline(seconds), ceilings()
    content = {
        "suite": suite,
        "machine": machine(),
        "bandwidth_gb_s": rates.bandwidth / 1e9,
        "matrix_tflop_s": rates.rate / 1e12,
        "rows": [],
        "left_out": [],
    }
    print(f"copy {rates.bandwidth / 1e9:.0f} GB/s, matrix {rates.rate / 1e12:.0f} TF/s")
    measure_all(parts(rates, deadline), deadline, content)
    aims = goals(content["rows"])
    content["goals"] = [goal.to_dict() for goal in aims]
    return Report(goal_table(aims) if aims else "", content)


def machine() -> dict:
    """The properties of the GPU and the versions of the software."""
    import transformers
    import triton

    about = {"gpu": None}
    if torch.cuda.is_available():
        gpu = torch.cuda.get_device_properties(torch.cuda.current_device())
        about = {
            "gpu": gpu.name,
            "processors": gpu.multi_processor_count,
            "memory_gib": round(gpu.total_memory / 2**30, 1),
        }
    return about | {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "transformers": transformers.__version__,
    }


def against_floor(name: str, measured: float, cost: Cost, ceilings: Ceilings, **more) -> dict:
    """One row: the measured milliseconds, the floor in milliseconds, their ratio, and whether memory or matrix products
    determine the floor. more: further fields."""
    floor = ceilings.floor(cost)
    return {
        "name": name,
        "ms": measured,
        "floor_ms": floor,
        "times_floor": measured / floor,
        "bound": ceilings.bound(cost),
        **more,
    }


def attempt(call: Callable[[], object]) -> tuple[object | None, str | None]:
    """The result of ``call`` and None; or, if the call raises, None and the error in words. So a failure ends only the
    part of the suite in which it happens."""
    try:
        return call(), None
    except Exception as error:  # noqa: BLE001 - whatever a kernel, a compiler or a peer raises
        return None, f"{type(error).__name__}: {error}"[:300]


def measure_all(parts: Iterable[Part], deadline: Deadline, content: dict) -> None:
    """Run the parts while there is time, print their rows and append them to content["rows"].

    Parts that fail, or for which too little time is left, are named in content["left_out"]. Rows that were measured
    before a failure stay.
    """

    def measure(part: Callable[[], Iterable[dict]]) -> None:
        for row in part():
            print(line(row), flush=True)
            content["rows"].append(row)

    for name, part, seconds in parts:
        problem = "no time was left"
        if deadline.left > seconds:
            _, problem = attempt(lambda part=part: measure(part))
        if problem is not None:
            content["left_out"].append(f"{name}: {problem}")
            print(f"{name} left out: {problem}", flush=True)


def line(row: dict) -> str:
    """A row as one line of text."""
    shown = [f"{row['name']:44}"]
    for key, value in row.items():
        if key != "name":
            shown.append(f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}")
    return "  ".join(shown)
