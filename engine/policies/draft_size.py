"""How much to draft: the size with the most tokens a millisecond on this machine.

Two numbers a size (nodes of a chain or tree) decide. What it *gains*, mean accepted tokens a step,
belongs to the models: it was measured when they were trained and lies beside them (``gains.json``).
What it *costs*, the milliseconds of a step, belongs to the machine: it is measured here, once, by
taking real steps on prompts of the same kinds, and remembered in the user's cache folder, so that
the same options resolve to the same numbers the next time.
"""

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch

from engine.drafters.base import Drafter
from engine.loops import run_loop
from engine.memory import Memory
from engine.options import Value
from engine.parts.loading import Models
from engine.progress import Tell, silent
from engine.sampling import Sampling
from engine.text import TextRequest
from engine.turn import ENGINE_LOCK
from engine.verifiers import verifier

SIZES = (1, 2, 4, 7, 11, 16)
"""Beyond the last one there is little to gain, and a picture of it could not be read."""

METHOD = 4  # of measuring; what was remembered by another one is not used
TOKENS = 24  # written after each prompt
GAINS = "gains.json"


def settle_size(
    cls: type[Drafter],
    options: dict[str, Value],
    models: Models,
    sampling: Sampling,
    tell: Tell = silent,
) -> dict[str, Value]:
    """The options with a size of 0, "what pays here", replaced by a number.

    Where tokens are drawn, for models whose gains are unknown, and on machines on which nothing
    can be remembered it is the drafter's usual size: gains are those of greedy decoding.
    """
    name = cls.size_option
    if name is None or options[name] != 0:
        return options
    size = _best_size(cls, options, models, tell) if sampling.greedy else cls.usual_size
    return options | {name: size}


def _best_size(cls: type[Drafter], options: dict[str, Value], models: Models, tell: Tell) -> int:
    known = known_gains(models)
    if cls.key not in known.gains or not known.prompts:
        return cls.usual_size
    costs = _remembered_costs(cls, options, models, known, tell)
    return cls.usual_size if costs is None else best(known.gains[cls.key], costs)


def best(gains: Mapping[int, float], costs: Mapping[int, float]) -> int:
    """By size, tokens and milliseconds of a step. The size with most tokens a millisecond."""
    return max(gains.keys() & costs.keys(), key=lambda size: gains[size] / costs[size])


@dataclass(frozen=True)
class Known:
    """gains: by drafter and size, tokens of a step. prompts: one of each kind they are means over;
    costs are measured on these, for where a draft is sure of itself it is longer and costs more.
    """

    gains: Mapping[str, Mapping[int, float]]
    prompts: Sequence[str]

    @classmethod
    def of(cls, content: dict) -> "Known":
        """As it is written in the file; drafters without a size are left out. Raises KeyError,
        TypeError, AttributeError or ValueError."""
        gains = {
            key: {int(size): float(gain) for size, gain in curve.items()}
            for key, curve in content["gains"].items()
            if curve
        }
        numbers = [number for curve in gains.values() for pair in curve.items() for number in pair]
        if not all(0 < number < math.inf for number in numbers):
            raise ValueError("a size or a gain is no positive number")
        return cls(gains, [str(prompt) for prompt in content["prompts"] if str(prompt).strip()])


def known_gains(models: Models) -> Known:
    """From the files beside the target and the parts; nothing if there are none."""
    gains, prompts = {}, []
    for folder in models.folders.values():
        try:
            found = Known.of(json.loads((Path(folder) / GAINS).read_text("utf-8")))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
        gains |= found.gains
        prompts = found.prompts
    return Known(gains, prompts)


def measure_costs(
    cls: type[Drafter],
    options: dict[str, Value],
    models: Models,
    known: Known,
    tell: Tell = silent,
) -> dict[int, float]:
    """Milliseconds of a step, drafting to commit, by size: the mean over the steps on all prompts,
    those on one prompt each counted at their median. Sizes take turns on each prompt, so that a busy
    moment slows all of them; a first round on one prompt warms up. They share a memory, as the runs of
    one visitor do.
    """
    sizes, memory = known.gains[cls.key], Memory()
    spent, steps = dict.fromkeys(sizes, 0.0), dict.fromkeys(sizes, 0)
    prompts = [*known.prompts[:1], *known.prompts]
    for turn, prompt in enumerate(prompts):
        tell(f"Measuring what {cls.title} costs on this machine, once", turn / len(prompts))
        for size in sizes:
            drafter = cls.build(options | {cls.size_option: size}, models)
            taken = _step_milliseconds(drafter, models, prompt, memory)
            if turn:
                spent[size] += median(taken) * len(taken)
                steps[size] += len(taken)
    return {size: spent[size] / steps[size] for size in sizes}


def _step_milliseconds(
    drafter: Drafter, models: Models, prompt: str, memory: Memory
) -> list[float]:
    tokens = models.target.tokenizer(prompt)["input_ids"]
    rule = verifier("greedy")
    request = TextRequest(drafter, rule, Sampling(), tokens, TOKENS, memory=memory)
    # nobody records here, so the passes measured are those that a quiet run makes
    steps, taken = run_loop(models.target, request, recorded=False), []
    while True:
        with ENGINE_LOCK:  # for a step at a time, so that others' runs go on
            step = next(steps, None)
        if step is None:
            return taken
        taken.append(sum(step.milliseconds.values()))


def _remembered_costs(
    cls, options, models: Models, known: Known, tell: Tell
) -> dict[int, float] | None:
    key = _key(cls, options, models)
    memory = _read_memory()
    if key not in memory:
        costs = measure_costs(cls, options, models, known, tell)
        memory[key] = {str(size): cost for size, cost in costs.items()}
        if not _write_memory(memory):
            return None
    return {int(size): float(cost) for size, cost in memory[key].items()}


def _key(cls, options, models: Models) -> str:
    """Everything that costs depend on: drafter, models, and how this process computes."""
    others = {name: value for name, value in options.items() if name != cls.size_option}
    target = models.target
    shape = [str(target.device), str(target.dtype), torch.get_num_threads(), torch.__version__]
    folders = [models.folders[name] for name in sorted(cls.needs)]
    measured = [METHOD, cls.key, others, [target.name, target.parameters], *folders]
    return json.dumps([*measured, *shape])


def memory_file() -> Path:
    """Where costs are remembered; DRAFTSCOPE_CACHE names another folder."""
    folder = os.environ.get("DRAFTSCOPE_CACHE")
    return Path(folder or Path.home() / ".cache" / "draftscope") / "step_costs.json"


def _read_memory() -> dict:
    try:
        found = json.loads(memory_file().read_text("utf-8"))
    except (OSError, ValueError, RuntimeError):  # RuntimeError: no home
        return {}
    return found if isinstance(found, dict) else {}


def _write_memory(memory: dict) -> bool:
    try:
        path = memory_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f"{path.name}.{os.getpid()}")
        beside.write_text(json.dumps(memory, indent=1), "utf-8")
        beside.replace(path)
    except (OSError, RuntimeError):
        return False
    return True
