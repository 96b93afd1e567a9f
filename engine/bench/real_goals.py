"""What the suite ``real`` must show, computed from one run."""

from collections.abc import Mapping, Sequence

from engine.bench.bench_figures import Row, best_of, geometric_mean
from engine.bench.contestants import plain
from engine.bench.goals import Goal, group, of, ratios, speed, step
from engine.bench.openvino.openvino_peers import ROUNDED
from engine.bench.peers_suite import Race
from engine.bench.suite import Result

CHOOSER = "auto"
"""The drafter that picks among the others, and its group."""


def real_goals(race: Race, absent: Mapping[str, str]) -> list[Goal]:
    """absent: peers that could not take part, each with the reason. The best drafter of each kind of prompt counts, and
    beside it the best of the peer's ways for that kind."""
    rows, base = race.table, plain().key
    none, chooser = of(rows, base), of(rows, CHOOSER)
    best = best_of(rows, [name for name in group(rows, "ours") if name != base])
    names = [row.contestant for row in rows if row.group in ("assisted", "lookup")]
    genai = [name for name in names if name.startswith("openvino")]
    theirs = [name for name in names if name not in genai]
    genai = [name for name in genai if not name.startswith(ROUNDED)]
    gains = ratios(best, none) if best else []
    reason = absent.get("openvino", "")
    beside = _over(best, best_of(rows, theirs)), _over(best, best_of(rows, genai))
    plainly = _over(none, of(rows, "openvino"))
    own = [*group(rows, "ours"), *group(rows, CHOOSER)]
    same = sum(race.equal[name] for name in own) / sum(race.texts[name] for name in own)
    chosen = min(ratios(chooser, best)) if chooser and best else None
    slowest = min(_by_prompt(race.results, CHOOSER, base), default=None)
    missing = "" if chooser else f"there is no drafter {CHOOSER}"
    return [
        Goal("texts of this engine that equal generate", 1.0, 1.0, same),
        Goal(f"{base} / openvino", 0.95, 1.05, plainly, reason=reason),
        Goal(f"best drafter / {base}", 1.7, 2.3, geometric_mean(gains) if gains else None),
        Goal(f"best drafter / {base}, least kind", 1.15, None, min(gains, default=None)),
        Goal("best drafter / transformers' best speculation", 1.6, 2.2, beside[0]),
        Goal("best drafter / openvino's best speculation", 1.15, 1.5, beside[1], reason=reason),
        Goal(f"{CHOOSER} / best drafter, least kind", 0.95, None, chosen, reason=missing),
        Goal(f"{CHOOSER} / {base}, least prompt", 0.98, None, slowest, reason=missing),
        Goal("eagle of 6, tokens a pass", 2.4, 2.9, _step(rows, "eagle of 6")),
        Goal("chain of 4, tokens a pass", 2.1, None, _step(rows, "chain of 4")),
    ]


def _over(own: Mapping[str, Row], other: Mapping[str, Row]) -> float | None:
    return speed(own, [other]) if own and other else None


def _step(rows: Sequence[Row], name: str) -> float | None:
    own = of(rows, name)
    return step(own) if own else None


def _by_prompt(results: Sequence[Result], name: str, base: str) -> list[float]:
    """For each prompt the time of ``base`` divided by that of the contestant of this name, over all rounds."""
    spent: dict[tuple[str, str], float] = {}
    for result in results:
        key = result.contestant, result.prompt.name
        spent[key] = spent.get(key, 0.0) + result.writing.seconds
    return [spent[base, prompt] / taken for (who, prompt), taken in spent.items() if who == name]
