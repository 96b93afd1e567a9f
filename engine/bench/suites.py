"""The suites of measurements by name. Each is imported when it is asked for."""

import importlib
from collections.abc import Mapping, Sequence

from engine.parts.loading import ModelPaths

SUITES = {
    "peers": "engine.bench.command:peers",
    "openvino": "engine.bench.openvino.openvino_command:openvino",
    "overlap": "engine.bench.overlap:overlap",
    "joined": "engine.bench.joined:joined",
    "load": "engine.bench.load_suite:load",
    "aligned": "engine.bench.aligned:aligned",
    "parallelbench": "engine.bench.parallelbench:parallelbench",
    "policies": "engine.bench.policies:policies",
    "reasoning": "engine.bench.reasoning_suite:reasoning",
    "retrieval": "engine.bench.retrieval:retrieval",
    "schema": "engine.bench.schema:schema",
    "pictures": "engine.bench.pictures:pictures",
    "continuous": "engine.bench.continuous:continuous",
    "vocabtrim": "engine.bench.vocabtrim:vocabtrim",
    "online": "engine.bench.online:online",
    "within": "engine.bench.within:within",
    "kernels": "engine.bench.gpu:kernels",
    "gpu": "engine.bench.gpu:gpu",
    "pieces": "engine.bench.gpu:pieces",
}
"""Name -> module and function. A function takes (models, workloads, quick, out)."""


def run_suite(
    name: str,
    models: ModelPaths,
    workloads: Mapping[str, Sequence[dict]],
    quick: bool,
    out: str | None,
) -> None:
    """Measure, print, and write the figures to ``out``.

    workloads: prompts by kind, as presets hold them. Raises UserError where a suite cannot run.
    """
    module, function = SUITES[name].split(":")
    getattr(importlib.import_module(module), function)(models, workloads, quick, out)
