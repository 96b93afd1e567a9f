"""The suite ``gpu``: what a step costs, what the host costs, tokens a second end to end."""

import torch

from engine.bench_gpu.costs import SHAPES
from engine.bench_gpu.end_to_end import end_to_end
from engine.bench_gpu.report import measure_all, opening, write
from engine.bench_gpu.steps import step_times
from engine.bench_gpu.timing import Deadline, ceilings, require_gpu

SECONDS = 220


def run_gpu(paths, prompts: list[str], json_path: str | None = None) -> dict:
    """Measure, print a line a row, write JSON.

    paths: engine.models.ModelPaths of a trained pair, for random weights accept nothing.
    Raises UserError where there is no GPU.
    """
    require_gpu()
    torch.manual_seed(0)
    deadline, found = Deadline(SECONDS), ceilings()
    content = opening("gpu", found)
    parts = [(shape.name, lambda shape=shape: step_times(shape, found), 40) for shape in SHAPES]
    for dtype in ("float32", "bfloat16"):
        part = lambda dtype=dtype: end_to_end(paths, prompts, deadline, dtype)
        parts.append((f"end to end, {dtype}", part, 30))
    measure_all(parts, deadline, content)
    write(json_path, content)
    return content
