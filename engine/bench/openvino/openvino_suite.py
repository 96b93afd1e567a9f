"""`python -m engine bench --peer openvino`: this engine beside OpenVINO GenAI, interleaved, on the same prompts."""

from collections.abc import Sequence

from engine.bench.bench_figures import Row, geometric_mean
from engine.bench.contestants import Ours, plain
from engine.bench.goals import Goal, goals_beside_openvino
from engine.bench.openvino.openvino_peers import genai_contestants
from engine.bench.peers import plain_generate
from engine.bench.peers_suite import Race, beside
from engine.bench.report import Report
from engine.bench.suite import Cards, Plan
from engine.bench.weather import reading_milliseconds, steadiness
from engine.parts.loading import ModelPaths

FULL = Plan(prompts=4, rounds=3, tokens=128)
QUICK = Plan(prompts=2, rounds=2, tokens=64)


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    """Texts are compared with those of transformers' generate, which also takes part."""
    peers = genai_contestants(paths)
    reference = plain_generate(paths, "reference")
    lines: list[str] = []

    def judge(race: Race) -> list[Goal]:
        reading = reading_milliseconds(race.models.target)
        ours = [each for each in race.suite.contestants if isinstance(each, Ours)]
        lines.append(_tokens_in_readings(race.table, reading))
        steady = steadiness(ours, race.suite.prompts[0].tokens)
        return goals_beside_openvino(race.table, race.costs[0] / reading, steady)

    plan = QUICK if quick else FULL
    report = beside(paths, workloads, plan, [reference, *peers], reference, judge, schedules=())
    return Report("\n\n".join([report.text, *lines]), report.data)


def _tokens_in_readings(table: Sequence[Row], reading: float) -> str:
    """How a token of plain decoding compares with reading the weights once, which takes ``reading`` milliseconds."""
    here, there = (
        geometric_mean(row.tokens_per_second for row in table if row.contestant == name)
        for name in (plain().key, "openvino")
    )
    return (
        f"a token of plain decoding / reading the weights: {1000 / here / reading:.2f} here, "
        f"{1000 / there / reading:.2f} in openvino"
    )
