"""`python -m engine bench --suite devices`: how much time each optimisation of the compiled passes saves on this CPU.

A device is such an optimisation. The same greedy texts are written in turn with all devices and without one of them, by
models that are opened anew for each case. A figure is the median, over texts and rounds, of the time without the device
divided by the time with it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from statistics import median
from unittest.mock import patch

from engine.bench.contestants import Contestant, Ours, own_options
from engine.bench.report import Report, setting, table
from engine.bench.suite import Cards, Plan, Prompt, Result, Suite, choose
from engine.core.drafter import Drafter
from engine.fast.cpu.columns import Buffer, Buffers
from engine.fast.cpu.compiled_model import CompiledModel, CompiledSession
from engine.fast.cpu.fixed import Graphs
from engine.fast.cpu.pace import Pace
from engine.fast.cpu.row_shape import RowShape, rounded
from engine.fast.cpu.stretches import CompiledStretches
from engine.methods import drafters
from engine.model.language_model import LanguageModel
from engine.parts.loading import ModelPaths, Models, load_models
from engine.parts.models import open_model

FULL = Plan(prompts=1, rounds=12, tokens=64)
QUICK = Plan(prompts=1, rounds=3, tokens=32)
STORE = "engine.fast.cpu.store."

DEVICES = {
    "graphs for usual sizes": [
        patch.object(Graphs, "of", lambda self, rows, ahead=False: self.general),
    ],
    "draft beside the prompt": [
        patch.object(CompiledSession, "_reads_at_once", lambda self, prompt, draft: False),
    ],
    "spare rows": [patch.object(RowShape, "of", lambda self, rows: rounded(rows, self._sizes))],
    "buffers again": [patch.object(Buffers, "take", lambda self, *shape: Buffer(*shape))],
    "places of arguments": [patch("engine.fast.cpu.calls.SMALL", 0)],
    "rows ahead": [
        patch("engine.fast.cpu.ahead.BLOCKS", ()),
        patch("engine.methods.shared.compiled_cell_levels.BLOCKS", ()),
    ],
    "bf16 products": [patch(f"{STORE}bf16_pays", lambda: False)],
    "joined products": [
        patch(f"{STORE}join_products", lambda model, weights: 0),
        patch(f"{STORE}METHOD", "without joined products"),
    ],
    "shared matrices": [
        patch(f"{STORE}share_matrices", lambda model: 0),
        patch(f"{STORE}METHOD", "without shared matrices"),
    ],
    "stretches": [patch.object(CompiledStretches, "prepare", lambda self, parts, rows: None)],
    "head": [patch.object(CompiledModel, "head", LanguageModel.head)],
    "pace": [patch.object(Pace, "saw", lambda self, slowness: None)],
    "nothing": [],
}
"""From the name of an optimisation to the patches that switch it off. "nothing" switches nothing off, so its figures
show the noise."""


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    """Measure, and return the report. For each optimisation and each drafter, it holds the time without the
    optimisation divided by the time with it."""
    classes = [
        cls
        for cls in drafters().values()
        if cls.needs.keys() <= paths.parts.keys() and not cls.yours
    ]
    rows = measured(paths, workloads, classes, DEVICES, QUICK if quick else FULL)
    models = load_models(paths, {}, "float32", "cpu")
    columns = ["without=device", *(f"{cls.key}:.2f" for cls in classes)]
    return Report(table(rows, columns), setting(models, rows=rows))


def measured(
    paths: ModelPaths,
    workloads: Cards,
    classes: Sequence[type[Drafter]],
    devices: Iterable[str],
    plan: Plan,
) -> list[dict]:
    """One row for each of these optimisations. For each drafter, the row holds the time without the optimisation
    divided by the time with it."""
    needs = {role: kind for cls in classes for role, kind in cls.needs.items()}
    whole = opened(paths, needs)
    prompts = choose(whole, workloads, plan)
    ways = [_ours(cls, whole) for cls in classes]
    Suite(ways, prompts, Plan(1, 2, plan.tokens)).run()
    rows = []
    for device in devices:
        with without(device):
            lacking = opened(paths, needs)
        lacking_ways = [Lacking(_ours(cls, lacking), device) for cls in classes]
        Suite(lacking_ways, prompts, Plan(1, 2, plan.tokens)).run()
        row = {"device": device}
        for own, lacking_way in zip(ways, lacking_ways, strict=True):
            row[own.name] = ratio(Suite([own, lacking_way], prompts, plan).run(), own.name)
        rows.append(row)
    return rows


class Lacking(Contestant):
    """A contestant that writes while one optimisation is switched off. device: the name of the optimisation."""

    group = "ours"

    def __init__(self, contestant: Contestant, device: str) -> None:
        self.name, self._contestant, self._device = f"{contestant.name} without", contestant, device

    def write(self, prompt, count, counters=None):
        with without(self._device):
            return self._contestant.write(prompt, count, counters)


@contextmanager
def without(device: str) -> Iterator[None]:
    with ExitStack() as patches:
        for change in DEVICES[device]:
            patches.enter_context(change)
        yield


def opened(paths: ModelPaths, needs: Mapping[str, str]) -> Models:
    """Newly opened models, which share nothing with models that were opened earlier."""
    open_model.cache_clear()
    models = load_models(paths, needs, "float32", "cpu")
    open_model.cache_clear()
    return models


def _ours(cls: type[Drafter], models: Models) -> Ours:
    options = {} if cls.size_option is None else {cls.size_option: cls.usual_size}
    return Ours(cls, models, "", options | own_options(cls, {"stop_below": 0.0}))


def ratio(results: Sequence[Result], name: str) -> float:
    times: dict[tuple[Prompt, int], dict[bool, float]] = {}
    for result in results:
        key = id(result.prompt), result.round
        times.setdefault(key, {})[result.contestant == name] = result.writing.seconds
    return median(pair[False] / pair[True] for pair in times.values())
