"""Measures the gain of each draft size, in tokens per step, from runs with that size. ``engine.sizes.draft_size``
chooses sizes by these gains."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean

from engine.core.memory import Memory
from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.loops import run_loop
from engine.methods import drafters
from engine.parts.gain_table import GAINS
from engine.parts.loading import ModelPaths, load_models
from engine.rules import verifier
from engine.sizes.draft_size import SIZES


def gains(cls, models, prompts: Mapping[str, Sequence[str]], new_tokens: int) -> dict[int, float]:
    """Draft size in nodes -> tokens per step of greedy runs, the final token of each step included. The value is the
    geometric mean of the workloads' means. Sizes that are too large for the drafter to fill are left out.

    prompts: workload -> prompts. All runs with one size share a memory, like the runs of one visitor.
    """
    curve: dict[int, float] = {}
    for size in SIZES:
        options = resolve(cls.key, cls.options, {cls.size_option: size})
        gain = _gain(cls, options, models, prompts, new_tokens)
        if curve and gain == curve[max(curve)]:
            break
        curve[size] = gain
    return curve


def _gain(
    cls, options: dict, models, prompts: Mapping[str, Sequence[str]], new_tokens: int
) -> float:
    encode, memory = models.target.tokenizer, Memory()
    texts = ([encode(text)["input_ids"] for text in group] for group in prompts.values())
    means = [tokens_a_step(cls, options, models, group, new_tokens, memory) for group in texts]
    return round(geometric_mean(means), 4)


def tokens_a_step(
    cls,
    options: dict,
    models,
    prompts: Sequence[Sequence[int]],
    new_tokens: int,
    memory: Memory | None = None,
) -> float:
    """The mean number of tokens per step, over greedy runs of ``new_tokens`` tokens after these prompts. memory:
    shared by all runs; None: every run begins without memory."""
    steps = gained = 0
    for prompt in prompts:
        drafter, rule = cls.build(options, models), verifier("greedy")
        request = TextRequest(drafter, rule, Sampling(), prompt, new_tokens, memory=memory)
        for step in run_loop(models.target, request):
            steps += 1
            cut = step.stop is not None  # the last step counts as if the text went on
            gained += len(step.verdict.accepted) + (cut or step.final is not None)
    return gained / steps


def write(
    paths: ModelPaths,
    prompts: dict[str, list[str]],
    new_tokens: int,
    wanted: Collection[str] | None = None,
) -> dict[str, dict[int, float]]:
    """Measure the gains of every drafter that has a size option and whose model exists. Write them beside that model,
    or beside the target if the drafter needs no other model. Returns drafter -> size -> gain.

    prompts: workload -> prompts. The first prompt of each workload is also written, so that costs can later be
    measured on it. wanted: only drafters that need one of these models are measured ("target" stands for drafters that
    need no other model); None: all.
    """
    by_place: dict[str, dict[str, dict[int, float]]] = {}
    for cls in drafters().values():
        needs = tuple(cls.needs) or ("target",)
        missing = not cls.needs.keys() <= paths.parts.keys()
        unwanted = wanted is not None and not {*needs} & {*wanted}
        if cls.size_option is None or len(needs) != 1 or missing or unwanted:
            continue  # gains lie beside the target, or beside the one part that a drafter needs
        (place,) = needs
        models = load_models(paths, cls.needs)
        by_place.setdefault(place, {})[cls.key] = gains(cls, models, prompts, new_tokens)
    for place, curves in by_place.items():
        content = {"gains": curves, "prompts": [texts[0] for texts in prompts.values()]}
        folder = paths.target if place == "target" else paths.parts[place]
        file = Path(folder) / GAINS
        file.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    return {key: curve for curves in by_place.values() for key, curve in curves.items()}
