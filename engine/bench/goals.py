"""The figures the project promises, each from one run of the bench."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.bench.bench_figures import Row, best_of, geometric_mean


@dataclass(frozen=True)
class Goal:
    """at_most: the value must not exceed ``least``; otherwise it must reach it. value: None where this run
    lacked something for it (a missing model, a workload left out)."""

    what: str
    least: float
    aim: float
    value: float | None
    at_most: bool = False

    @property
    def met(self) -> bool | None:
        if self.value is None:
            return None
        return self.value <= self.least if self.at_most else self.value >= self.least


def goals(table: Sequence[Row], verify_ratio: float | None) -> list[Goal]:
    """verify_ratio: the cost of a pass over the root and 8 nodes, in one-token steps."""
    book = _Book(table)
    return [
        Goal("none / transformers", 1.4, 1.8, book.over_all("none", book.plain)),
        Goal("8-node verify / one-token step", 1.6, 1.35, verify_ratio, at_most=True),
        Goal("chain / best assisted", 1.8, 3.0, book.over_all("chain", *book.assisted)),
        Goal("prompt_lookup / transformers lookup, edit", 1.5, 2.0, book.lookups("edit")),
        Goal("best drafter / none", 2.0, 3.0, book.best_over_none()),
        Goal("prompt_lookup / none, edit", 3.0, 5.0, book.on("edit", "prompt_lookup", "none")),
        Goal("dflash or ddtree, accepted, template", 4.0, 6.0, book.diffusion("template")),
        Goal("dyspec - chain, accepted, story", 0.5, 1.0, book.tree_gain("story")),
    ]


def goals_beside_openvino(
    table: Sequence[Row], one_row: float | None, steady: Mapping[str, float]
) -> list[Goal]:
    """The goals beside OpenVINO GenAI, whose rows have the groups of the peers.

    one_row: the time of a pass over one row, divided by the time of reading the weights once. steady: by
    drafter, the time of a step beside two busy processes, divided by that on a quiet machine.
    """
    book = _Book(table)
    drafting = [name for name in book.ours if name != "none"]
    speculation = [*book.assisted, *book.lookup]
    return [
        Goal("none / openvino", 0.85, 1.0, book.over_all("none", book.plain)),
        Goal(
            "best drafter / openvino's best speculation",
            1.1,
            1.5,
            book.best_over(drafting, speculation),
        ),
        Goal("prompt_lookup / openvino lookup, edit", 1.2, 1.5, book.lookups("edit")),
        Goal("one-row pass / reading the weights", 1.5, 1.15, one_row, at_most=True),
        *[
            Goal(f"step beside two busy processes, {name}", 3, 2, ratio, at_most=True)
            for name, ratio in steady.items()
        ],
    ]


class _Book:
    """The table, by workload and contestant."""

    def __init__(self, table: Sequence[Row]) -> None:
        self._table = table
        self._rows = {(row.workload, row.contestant): row for row in table}
        self._workloads = list(dict.fromkeys(row.workload for row in table))
        self.plain = next((row.contestant for row in table if row.group == "plain"), "")
        self.assisted = self._names("assisted")
        self.lookup = self._names("lookup")
        self.ours = self._names("ours")

    def _names(self, group: str) -> list[str]:
        return list(dict.fromkeys(row.contestant for row in self._table if row.group == group))

    def on(self, workload: str, name: str, base: str) -> float | None:
        one, other = self._rows.get((workload, name)), self._rows.get((workload, base))
        return one.tokens_per_second / other.tokens_per_second if one and other else None

    def over_all(self, name: str, *rivals: str) -> float | None:
        """Geometric mean over workloads of the ratio of ``name`` to its fastest rival there."""
        best = best_of(self._table, rivals)
        if not best or any((workload, name) not in self._rows for workload in self._workloads):
            return None
        return geometric_mean(self.on(w, name, best[w].contestant) for w in self._workloads)

    def best_over_none(self) -> float | None:
        drafting = [name for name in self._names("ours") if name != "none"]
        best = best_of(self._table, drafting)
        ratios = [best[w].to_none for w in self._workloads if w in best]
        return geometric_mean(ratios) if ratios and None not in ratios else None

    def best_over(self, names: Sequence[str], rivals: Sequence[str]) -> float | None:
        """The best geometric mean over workloads among ``names``, divided by the best among ``rivals``."""
        means = [self._means(group) for group in (names, rivals)]
        return max(means[0]) / max(means[1]) if all(means) else None

    def _means(self, names: Sequence[str]) -> list[float]:
        return [
            geometric_mean(
                self._rows[workload, name].tokens_per_second for workload in self._workloads
            )
            for name in names
        ]

    def lookups(self, workload: str) -> float | None:
        return self.on(workload, "prompt_lookup", self.lookup[0]) if self.lookup else None

    def diffusion(self, workload: str) -> float | None:
        found = [self._rows.get((workload, name)) for name in ("dflash", "ddtree")]
        return max((row.mean_accepted for row in found if row), default=None)

    def tree_gain(self, workload: str) -> float | None:
        tree, chain = (self._rows.get((workload, name)) for name in ("dyspec", "chain"))
        return tree.mean_accepted - chain.mean_accepted if tree and chain else None
