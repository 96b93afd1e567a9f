"""The gain of each draft size: tokens per step, from runs of each size, for ``engine.sizes.draft_size``."""

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
    """Size -> tokens per step with drafts of that many nodes, the final token included; greedy. It is the geometric mean
    of the workloads' means. prompts: by workload. The texts of a size share a memory, as the runs of one visitor do.

    Sizes that the drafter cannot fill are left out.
    """
    found: dict[int, float] = {}
    for size in SIZES:
        options = resolve(cls.key, cls.options, {cls.size_option: size})
        gain = _gain(cls, options, models, prompts, new_tokens)
        if found and gain == found[max(found)]:
            break
        found[size] = gain
    return found


def _gain(
    cls, options: dict, models, prompts: Mapping[str, Sequence[str]], new_tokens: int
) -> float:
    encode, memory = models.target.tokenizer, Memory()
    texts = ([encode(text)["input_ids"] for text in some] for some in prompts.values())
    each = [tokens_a_step(cls, options, models, some, new_tokens, memory) for some in texts]
    return round(geometric_mean(each), 4)


def tokens_a_step(
    cls,
    options: dict,
    models,
    prompts: Sequence[Sequence[int]],
    new_tokens: int,
    memory: Memory | None = None,
) -> float:
    """Mean over greedy texts after these prompts."""
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
    """Measure every drafter that has a size and whose part exists, and write its gains beside that part, or the target.

    prompts: by workload. The first of each goes into the files, so that costs can be measured on it. wanted: only the
    drafters that need one of these models ("target": those that need no other model).
    """
    found: dict[str, dict[str, dict[int, float]]] = {}
    for cls in drafters().values():
        needs = tuple(cls.needs) or ("target",)
        missing = not cls.needs.keys() <= paths.parts.keys()
        unwanted = wanted is not None and not {*needs} & {*wanted}
        if cls.size_option is None or len(needs) != 1 or missing or unwanted:
            continue  # gains lie beside the target, or beside the one part that a drafter needs
        (place,) = needs
        models = load_models(paths, cls.needs)
        found.setdefault(place, {})[cls.key] = gains(cls, models, prompts, new_tokens)
    for place, curves in found.items():
        content = {"gains": curves, "prompts": [some[0] for some in prompts.values()]}
        folder = paths.target if place == "target" else paths.parts[place]
        file = Path(folder) / GAINS
        file.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    return {key: curve for curves in found.values() for key, curve in curves.items()}
