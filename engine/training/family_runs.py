"""The engine's runs of the family: drafters on prompts of every workload, greedy."""

from __future__ import annotations

import json
from collections.abc import Iterable

from engine.methods import drafters
from engine.parts.loading import ModelPaths
from engine.run import RunRequest, open_run

DEPTHS = 6
SHOWN = ("chain", "dyspec", "prompt_lookup", "dflash", "ddtree")
"""The drafters of the model card: those that the draft and the diffusion drafter are made for, and a look-up beside
them."""


def summaries(models: ModelPaths, cls, prompts: Iterable[str], new_tokens: int) -> list[dict]:
    """Summary lines of greedy runs with the drafter's usual size, the same on every machine."""
    options = {cls.size_option: cls.usual_size} if cls.size_option else {}
    found = []
    for prompt in prompts:
        run = open_run(RunRequest(prompt, models, cls.key, options, max_new_tokens=new_tokens))
        for _ in run.steps():
            pass
        found.append(json.loads(run.summary()))
    return found


def by_depth(lines: list[dict]) -> list[float | None]:
    """Accepted / reached at depths 1, 2, ..., over all runs; None where nothing was reached."""
    shares = []
    for depth in range(DEPTHS):
        rows = [s["acceptance_by_depth"][depth : depth + 1] for s in lines]
        reached, accepted = (sum(r[0][k] for r in rows if r) for k in ("reached", "accepted"))
        shares.append(accepted / reached if reached else None)
    return shares


def measure(
    models: ModelPaths, prompts: dict[str, list[str]], new_tokens: int, need: str | None = None
) -> dict:
    """workload -> drafter of `SHOWN` -> mean accepted tokens (all runs together) and acceptance by depth. need: only the
    drafters that need this model."""
    found: dict[str, dict] = {}
    for workload, some in prompts.items():
        found[workload] = {}
        for cls in (drafters()[key] for key in SHOWN):
            missing = not cls.needs.keys() <= models.parts.keys()
            if missing or (need and need not in cls.needs):
                continue
            lines = summaries(models, cls, some, new_tokens)
            name = f"{cls.key}, {cls.usual_size} nodes" if cls.size_option else cls.key
            found[workload][name] = {
                "mean accepted": sum(s["new_tokens"] for s in lines)
                / sum(s["steps"] for s in lines),
                "by depth": by_depth(lines),
            }
    return found
