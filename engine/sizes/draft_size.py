"""Chooses the draft size: the one with the most tokens per millisecond on this machine.

For each size (number of nodes of a chain or tree) two numbers decide: its gain and its cost. The *gain* is the number
of tokens per step. It depends only on the models, so it was measured when they were trained, and is stored beside them
(``gains.json``). For models without this file, the gain is measured here. The *cost* is the milliseconds per step. It
depends on the machine, so it is measured here, once, by taking real steps on prompts of the same kinds. Costs are
stored in the user's cache folder (``engine.sizes.calibration``), so that the same options give the same size the next
time.

Gain and cost are geometric means over the kinds of text. Their quotient is then the geometric mean of the speeds, in
which every kind counts equally, however many steps its texts take. If other processes keep the machine busy, the
measurement is abandoned (``engine.sizes.calibration``), and this process uses the drafter's default size,
``usual_size``. The default is also used if DRAFTSCOPE_MEASURE is 0.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import geometric_mean, median

import torch

from engine.core.drafter import Drafter
from engine.core.load import Expected
from engine.core.memory import Memory
from engine.core.options import Value
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.core.threads import ENGINE_LOCK, torch_threads
from engine.loops import run_loop
from engine.parts.gain_table import GainTable, gain_table
from engine.parts.loading import Models
from engine.progress import Tell, silent
from engine.rules import verifier
from engine.sizes.calibration import Measurement, Patience, recall, remember
from engine.sizes.preparing import prepare
from engine.sizes.verify_cost import verify_costs

SIZES = (1, 2, 4, 7, 11, 16)
"""The sizes that are measured. Larger ones gain little more, and a picture of so large a draft could not be read."""
COSTED = (1, 2, 3, 4, 5, 6, 7)
"""The sizes whose step costs are measured for a drafter that chooses a size anew at every step."""

METHOD = 11  # version of the measurement; results of other versions are not used
PROMPTS = (
    "Once upon a time, there was a little",
    "def area(width, height):\n    return",
    "Question: What is 12 plus 30?\nAnswer:",
)
"""Prompts on which models are measured that come without prompts of their own."""
TOKENS = 48  # the tokens written after each prompt
TIE = 0.02
"""A larger size is chosen only if it is faster than a smaller one by more than this share of the speed. Smaller
differences are within the noise of the costs. A larger draft also has a cost that is not measured here: at the
beginning of a text, the weights for its passes are not in the processor's caches yet."""
FIRST = 2  # the first steps of a text are not counted: a compiled pass costs more until its shape has settled

COST_AWARE = "cost_aware"
"""The name of the option that makes a drafter need the cost of target passes."""
_too_busy: set[str] = set()
"""The keys whose measurement was abandoned. This process then uses the default size for them and does not measure
again."""


def settle_size(
    cls: type[Drafter],
    options: dict[str, Value],
    models: Models,
    sampling: Sampling,
    tell: Tell = silent,
) -> dict[str, Value]:
    """The options, with a draft size of 0 replaced by the size that is fastest on this machine.

    tell: receives the progress of the measurement. The size is the drafter's ``usual_size`` if the run samples (gains
    hold for greedy decoding only), if the target is behind an engine, if measuring is turned off or was abandoned, or
    if results cannot be stored.
    """
    name = cls.size_option
    if name is None or options[name] != 0:
        return options
    if options.get(COST_AWARE):
        return options | {name: SIZES[-1]}
    pays = _measures(models) and sampling.greedy
    return options | {name: _best_size(cls, options, models, tell) if pays else cls.usual_size}


def with_costs(
    cls: type[Drafter], options: Mapping[str, Value], models: Models, tell: Tell = silent
) -> Models:
    """The models, with ``costs`` (of target passes) filled in if the drafter needs them under these options. They are
    measured once for all drafters."""
    if not cls.asks_for_costs(options) or not _measures(models):
        return models
    key = json.dumps([METHOD, "passes", *_place(models, ["target"])])
    measured = recall(key)
    if measured is None:
        tell("Measuring what a pass costs on this machine, once", 0.0)
        costs = verify_costs(models.target)
        measured = Measurement({1 + nodes: milliseconds for nodes, milliseconds in costs.items()})
        remember(key, measured)
    return replace(models, costs={rows - 1: cost for rows, cost in sorted(measured.costs.items())})


def _measures(models: Models) -> bool:
    """Whether costs are measured at all: not if measuring is turned off, and not for a target behind an engine, where
    the time of a step depends mostly on the network."""
    return models.target.known is None and os.environ.get("DRAFTSCOPE_MEASURE", "1") != "0"


def with_step_costs(
    cls: type[Drafter], options: dict[str, Value], models: Models, tell: Tell = silent
) -> Models:
    """The models, with ``step_costs`` (size -> milliseconds of a step) filled in if the drafter needs them; they are
    measured once. They stay empty if measuring is turned off or was abandoned, if results cannot be stored, or if the
    target is behind an engine."""
    fixed = cls.at_fixed_size(options)
    if fixed is None or not _measures(models):
        return models
    prompts = gain_table(models).prompts or PROMPTS
    table = GainTable({cls.key: dict.fromkeys(COSTED, 1.0)}, prompts)
    measured = _calibrated(cls, dict(fixed), models, table, tell)
    return models if measured is None else replace(models, step_costs=measured.costs)


def _best_size(cls: type[Drafter], options: dict[str, Value], models: Models, tell: Tell) -> int:
    table = gain_table(models)
    own = not table.gains and "target" in models.folders
    if own:  # nobody has measured this pair: both gains and costs are measured here
        table = GainTable({cls.key: dict.fromkeys(SIZES, 1.0)}, PROMPTS)
    if cls.key not in table.gains or not table.prompts:
        return cls.usual_size
    measured = _calibrated(cls, options, models, table, tell)
    if measured is None:
        return cls.usual_size
    return best(measured.gains if own else table.gains[cls.key], measured.costs)


def best(gains: Mapping[int, float], costs: Mapping[int, float]) -> int:
    """The size with the most tokens per millisecond; among sizes that are nearly as fast (``TIE``), the smallest.
    gains: size -> tokens per step. costs: size -> milliseconds per step."""
    speeds = {size: gains[size] / costs[size] for size in gains.keys() & costs.keys()}
    enough = (1 - TIE) * max(speeds.values())
    return min(size for size, speed in speeds.items() if speed >= enough)


def measure(
    cls: type[Drafter],
    options: dict[str, Value],
    models: Models,
    table: GainTable,
    tell: Tell = silent,
) -> Measurement | None:
    """Measure milliseconds per step and tokens per step for each size in the table; None if the measurement was
    abandoned. A prompt's milliseconds are the median over its steps, from drafting to commit; its tokens per step are
    the mean. The result has the geometric means over the prompts.

    The sizes take turns on each prompt, so that a busy moment slows all of them. A first round on one prompt is a
    warm-up and does not count. Each size has its own memory, which its texts after all prompts share, like the runs of
    one visitor. With a common memory, a drafter that learns would copy the text that another size has written after
    the same prompt. The noise is the relative difference between the median times of the two halves of a text.
    """
    sizes = table.gains[cls.key]
    memories = {size: Memory() for size in sizes}
    costs, gains = ({size: [] for size in sizes} for _ in range(2))  # one entry per prompt
    spreads: list[float] = []
    prompts = [*table.prompts[:1], *table.prompts]
    what = f"Measuring what {cls.title} costs on this machine, once"
    tell(what, 0.0)
    _prepare(cls, options, models, prompts, max(sizes))
    patience = Patience()  # making graphs takes time on any machine
    for turn, prompt in enumerate(prompts):
        for place, size in enumerate(sizes):
            if patience.over:
                return None
            done = (turn + place / len(sizes)) / len(prompts)
            tell(what, done)
            drafter = cls.build(options | {cls.size_option: size}, models)
            memory = memories[size] if turn else Memory()
            spent, written = _steps_of(drafter, models, prompt, memory)
            if turn and spent:
                costs[size].append(median(spent[FIRST:] or spent))
                gains[size].append(written / len(spent))
                spreads += _spread(spent)
    if not all(costs.values()):
        return Measurement({})
    return Measurement(
        {size: geometric_mean(figures) for size, figures in costs.items()},
        {size: geometric_mean(figures) for size, figures in gains.items()},
        median(spreads) if spreads else 0.0,
    )


def _prepare(
    cls: type[Drafter], options: dict, models: Models, prompts: Sequence[str], most: int
) -> None:
    """Compile the graphs of the passes for drafts of up to ``most`` nodes after these prompts."""
    drafter = cls.build(options | {cls.size_option: most}, models)
    for prompt in prompts:
        length = len(models.target.tokenizer(prompt)["input_ids"])
        with ENGINE_LOCK:
            prepare(models, drafter, most, Expected(length, length + TOKENS), greedy=True)


def _spread(spent: list[float]) -> list[float]:
    half = len(spent) // 2
    if half < 2:
        return []
    first, second = sorted((median(spent[:half]), median(spent[half:])))
    return [second / first - 1] if first > 0 else []


def _steps_of(
    drafter: Drafter, models: Models, prompt: str, memory: Memory
) -> tuple[list[float], int]:
    """Continue a prompt. Returns the milliseconds of each step, and the number of tokens written in all steps
    together."""
    tokens = models.target.tokenizer(prompt)["input_ids"]
    rule = verifier("greedy")
    request = TextRequest(drafter, rule, Sampling(), tokens, TOKENS, memory=memory)
    # nothing is recorded, so the measured passes are those of an unrecorded run
    steps, spent, written = run_loop(models.target, request, recorded=False), [], 0
    while True:
        with (
            ENGINE_LOCK,
            torch_threads(models.target.torch_threads),
        ):  # one step at a time, so that others can go on
            step = next(steps, None)
        if step is None:
            return spent, written
        spent.append(sum(step.milliseconds.values()))
        written += len(step.output)


def _calibrated(cls, options, models: Models, table: GainTable, tell: Tell) -> Measurement | None:
    """The stored measurement if it is still good, otherwise a new one; None if measuring was abandoned, or if results
    cannot be stored on this machine."""
    key = key_of(cls, options, models)
    entry = recall(key)
    if (
        entry is not None
        and not entry.doubtful
        and entry.costs.keys() >= table.gains[cls.key].keys()
    ):
        return entry
    if key in _too_busy:
        return None
    fresh = measure(cls, options, models, table, tell)
    if fresh is None:
        _too_busy.add(key)
        return None
    if not fresh.costs:
        return None
    fresh = fresh.after(entry)
    return fresh if remember(key, fresh) else None


def watched(
    cls: type[Drafter], wanted: Mapping[str, Value], options: Mapping[str, Value], models: Models
) -> tuple[str, int] | None:
    """The (key, size) to pass to ``observed`` when a run has ended. None if the user chose the size, or if the times
    of the run cannot be compared with the stored costs.

    wanted: the options as the user gave them, before ``settle_size``.
    """
    name = cls.size_option
    target = models.target
    if name is None or wanted[name] != 0 or target.asynchronous or target.known is not None:
        return None  # on a GPU the steps of a recorded run differ from the measured ones
    return key_of(cls, options, models), int(options[name])


def key_of(cls, options: Mapping[str, Value], models: Models) -> str:
    """The key under which costs are stored. It contains everything on which they depend: drafter, options, models,
    device, type and threads."""
    rest = {name: value for name, value in options.items() if name != cls.size_option}
    return json.dumps([METHOD, cls.key, rest, *_place(models, ["target", *sorted(cls.needs)])])


def _place(models: Models, roles: Sequence[str]) -> list:
    """The part of a key that names the models of these roles, and the device, type, threads and versions with which
    this process computes."""
    target = models.target
    folders = [models.folders[role] for role in roles if role in models.folders]
    build = [type(target).__name__, torch.get_num_threads(), target.torch_threads]
    ways = [str(target.device), str(target.dtype), target.reads_stored, *build, torch.__version__]
    return [[target.name, target.parameters], *folders, *ways]
