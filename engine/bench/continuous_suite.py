"""`python -m engine bench --suite continuous`: acceptance rates for continuous densities. It needs no model."""

from dataclasses import asdict

from engine.bench.report import Report, table
from engine.bench.suite import Cards
from engine.continuous.continuous_figures import Figures, measured
from engine.parts.loading import ModelPaths


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    """Measure, and return the report. quick: use fewer points."""
    measurements = measured(quick)
    return Report(report_text(measurements), measurements.to_dict())


def report_text(measurements: Figures) -> str:
    """The report's text: tables of the measurements."""
    columns = "shift:.1f kept:.3f error:.3f integral:.3f tried_a_refusal=tried:.2f"
    length, passes = measurements.walk
    lines = [
        "Drafts kept against the overlap integral, by the shift of the draft:",
        table([asdict(row) for row in measurements.overlaps], columns),
        "Two-sample tests against the target (energy distance, permutations):",
        *(f"  {name:<34} p = {value:.3f}" for name, value in measurements.tests.items()),
        f"A walk of {length} points: {passes} passes of the target, {length / passes:.2f} points a pass.",
    ]
    return "\n".join(lines)
