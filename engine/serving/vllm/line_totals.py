"""Computes the summary of a trace from its step lines, for traces that are still growing or whose writer stopped
before the summary."""

from __future__ import annotations

STAGES = ("prefill", "draft", "verify", "judge", "commit")


class LineTotals:
    """Totals over the step lines of a trace, to which the lines are added in order."""

    def __init__(self) -> None:
        self.steps = self.new_tokens = 0
        self._passes: dict[str, int] = {}
        self._histogram: list[int] = []
        self._depths: list[dict] = []
        self._milliseconds = dict.fromkeys(STAGES, 0.0)
        self._pieces: list[str] = []

    def add(self, line: dict) -> None:
        nodes, output = line["nodes"], line["output"]
        accepted = [node for node, status in enumerate(nodes["status"]) if status == "accepted"]
        self.steps += 1
        self.new_tokens += len(output["tokens"])
        self._pieces += output["pieces"]
        self._histogram += [0] * (len(accepted) + 1 - len(self._histogram))
        self._histogram[len(accepted)] += 1
        for model, count in line.get("passes", {}).items():
            self._passes[model] = self._passes.get(model, 0) + count
        for stage in STAGES[1:]:
            self._milliseconds[stage] += line["milliseconds"][stage]
        self._milliseconds["prefill"] += line.get("prefill", 0.0)
        judged = {entry["node"] for entry in line["judgements"]}
        for place in {-1, *accepted} & {nodes["parent"][node] for node in judged}:
            self._depth(1 + (0 if place < 0 else nodes["depth"][place]))["reached"] += 1
        for name, counted in (("judged", judged), ("accepted", judged.intersection(accepted))):
            for node in counted:
                self._depth(nodes["depth"][node])[name] += 1

    def _depth(self, depth: int) -> dict:
        while len(self._depths) < depth:
            place = len(self._depths) + 1
            self._depths.append({"depth": place, "reached": 0, "judged": 0, "accepted": 0})
        return self._depths[depth - 1]

    def summary(self, stop: str) -> dict:
        """The summary line. stop: the reason why the text ended."""
        total = sum(self._milliseconds.values())
        reached = sum(row["reached"] for row in self._depths)
        accepted = sum(row["accepted"] for row in self._depths)
        milliseconds = self._milliseconds | {"total": total}
        return {
            "kind": "summary",
            "new_tokens": self.new_tokens,
            "steps": self.steps,
            "target_calls": self._passes.get("target", 0),
            "passes": self._passes,
            "mean_accepted": self.new_tokens / self.steps if self.steps else None,
            "acceptance_rate": accepted / reached if reached else None,
            "accepted_histogram": self._histogram,
            "acceptance_by_depth": self._depths,
            "milliseconds": {name: round(value, 4) for name, value in milliseconds.items()},
            "tokens_per_second": 1000 * self.new_tokens / total if total else None,
            "stop": stop,
            "text": "".join(self._pieces),
        }
