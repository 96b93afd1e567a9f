"""What each draft size gains: mean accepted tokens a step, for ``engine.policies.draft_size``, by runs of each size."""

from __future__ import annotations

import json
from pathlib import Path

from engine.drafters import drafters
from engine.loops import run_loop
from engine.options import resolve
from engine.parts.loading import ModelPaths, load_models
from engine.policies.draft_size import GAINS, SIZES
from engine.sampling import Sampling
from engine.text import TextRequest
from engine.verifiers import verifier


def gains(cls, models, prompts: list[str], new_tokens: int) -> dict[int, float]:
    """By size: mean tokens of a step with drafts of so many nodes, the final token included; greedy.

    Sizes that the drafter cannot fill are left out.
    """
    found: dict[int, float] = {}
    for size in SIZES:
        gain = _gain(
            cls, resolve(cls.key, cls.options, {cls.size_option: size}), models, prompts, new_tokens
        )
        if found and gain == found[max(found)]:
            break
        found[size] = gain
    return found


def _gain(cls, options: dict, models, prompts: list[str], new_tokens: int) -> float:
    steps = gained = 0
    for prompt in prompts:
        tokens = models.target.tokenizer(prompt)["input_ids"]
        drafter = cls.build(options, models)
        request = TextRequest(drafter, verifier("greedy"), Sampling(), tokens, new_tokens)
        for step in run_loop(models.target, request):
            steps += 1
            cut = step.stop is not None  # the last step counts as if the text went on
            gained += len(step.verdict.accepted) + (cut or step.final != "none")
    return round(gained / steps, 4)


def write(
    folder: Path, prompts: dict[str, list[str]], new_tokens: int
) -> dict[str, dict[int, float]]:
    """Measure every drafter with a size and put its gains beside the model it needs.

    prompts: by workload. The first of each goes into the files, for costs to be measured on.
    """
    paths = ModelPaths(
        str(folder / "target"),
        {role: str(folder / role) for role in ("draft", "diffusion")},
    )
    every = [prompt for some in prompts.values() for prompt in some]
    found: dict[str, dict[str, dict[int, float]]] = {}
    for cls in drafters().values():
        if cls.size_option is None:
            continue
        (place,) = cls.needs  # the folder is named after what it holds
        models = load_models(paths, cls.needs)
        found.setdefault(place, {})[cls.key] = gains(cls, models, every, new_tokens)
    for place, curves in found.items():
        content = {"gains": curves, "prompts": [some[0] for some in prompts.values()]}
        (folder / place / GAINS).write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    return {key: curve for curves in found.values() for key, curve in curves.items()}
