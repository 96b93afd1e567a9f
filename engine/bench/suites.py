"""Runs a suite of measurements by its name. A suite is found by the name of its file, and imported only when it is
run."""

import importlib
from pathlib import Path

import transformers

from engine.bench.report import check_writable
from engine.bench.suite import Cards
from engine.finding import suites
from engine.parts.loading import ModelPaths


def run_suite(
    name: str,
    models: ModelPaths,
    workloads: Cards,
    quick: bool,
    out: str | None,
) -> None:
    """Run the suite with this name, print its report, and write the data to the path ``out`` unless it is None.

    A suite's function ``measure`` takes (models, workloads, quick) and returns a ``Report``. Raises UserError if the
    suite cannot run.
    """
    if out is not None:
        check_writable(Path(out))
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    importlib.import_module(suites()[name]).measure(models, workloads, quick).deliver(out)
