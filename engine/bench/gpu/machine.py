"""The suite ``gpu``: the cost of a step, the host's share of it, and tokens per second end to end."""

from collections.abc import Iterator
from functools import partial

import torch
import transformers

from engine.bench.gpu.costs import LLAMA_8B, QWEN3_4B, Ceilings
from engine.bench.gpu.end_to_end import end_to_end, greedy_equality
from engine.bench.gpu.gpu_goals import step_goals
from engine.bench.gpu.gpu_report import Part, measure_all, opening, write
from engine.bench.gpu.steps import step_times
from engine.bench.gpu.timing import Deadline, ceilings

SECONDS = 220
EQUAL_PROMPTS, RACED_PROMPTS = 50, 10


def run_gpu(paths, prompts: list[str], json_path: str | None = None) -> dict:
    """Measure, print one line for each row, and write JSON.

    paths: engine.parts.loading.ModelPaths of a trained pair, because random weights accept nothing.
    """
    torch.manual_seed(0)
    transformers.utils.logging.set_verbosity_error()
    deadline, found = Deadline(SECONDS), ceilings()
    content = opening("gpu", found)
    measure_all(parts(paths, prompts, found, deadline), deadline, content)
    write(json_path, content, step_goals(content["rows"]))
    return content


def parts(paths, prompts: list[str], found: Ceilings, deadline: Deadline) -> Iterator[Part]:
    """The parts that the goals need come first; the end-to-end comparison in fp32 follows if there is time."""
    yield LLAMA_8B.name, partial(step_times, LLAMA_8B, found), 60
    equality = partial(greedy_equality, paths, prompts[:EQUAL_PROMPTS], deadline)
    yield "greedy equality", equality, 30
    race = partial(end_to_end, paths, prompts[:RACED_PROMPTS], deadline)
    yield "end to end, bfloat16", partial(race, "bfloat16"), 30
    yield QWEN3_4B.name, partial(step_times, QWEN3_4B, found), 40
    yield "end to end, float32", partial(race, "float32"), 30
