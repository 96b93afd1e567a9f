"""All figures of the family in one dictionary, from which the model card quotes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Iterable
from pathlib import Path

from engine.methods import drafters
from engine.parts.loading import ModelPaths
from engine.run import RunRequest, open_run
from engine.training import evaluate, gains
from engine.training.corpus import read_corpora
from engine.training.generators import MAKERS, examples
from engine.training.generators.words import Vocabulary
from engine.training.new_models import parameter_count

NEW_TOKENS = 96
PER_WORKLOAD = 8
GAIN_PROMPTS = 4  # per workload; each is written once for every drafter and every draft size
SAMPLES = 5
TEMPERATURE = 0.8
DEPTHS = 6
SHOWN = ("chain", "dyspec", "prompt_lookup", "dflash", "ddtree")
"""The drafters of the model card: those that the draft and the diffusion drafter are made for, and a look-up beside
them."""


def chat_prompts(tokenizer) -> list[list[int]]:
    """The first held-out chats, up to the assistant's last turn."""
    stream = examples("chat", 2, Vocabulary(), held_out=True)
    return [tokenizer(e.prompt).input_ids for e in itertools.islice(stream, SAMPLES)]


def probe_prompts(tokenizer, data: Path, per_workload: int) -> dict[str, list[list[int]]]:
    """Held-out prompts as token ids: openings of validation stories, held-out generator prompts."""
    stories = read_corpora(data, "valid")["story"][:per_workload]
    found = {"story": [tokenizer(s).input_ids[:12] for s in stories]}
    for workload in MAKERS:
        stream = examples(workload, 2, Vocabulary(), held_out=True)
        rows = itertools.islice(stream, per_workload)
        found[workload] = [tokenizer(e.prompt).input_ids for e in rows]
    return found


def samples(target, tokenizer, prompts: dict[str, list[list[int]]]) -> dict[str, list[dict]]:
    """The target's answers to the first prompts of each workload, greedy and drawn."""
    return {
        workload: [
            {
                "prompt": tokenizer.decode(ids),
                "greedy": evaluate.complete(target, tokenizer, ids, NEW_TOKENS),
                "drawn": evaluate.complete(target, tokenizer, ids, NEW_TOKENS, TEMPERATURE, seed),
            }
            for seed, ids in enumerate(some[:SAMPLES])
        ]
        for workload, some in prompts.items()
    }


def probe_texts(tokenizer, prompts: dict[str, list[list[int]]]) -> dict[str, list[str]]:
    return {w: [tokenizer.decode(ids) for ids in some] for w, some in prompts.items()}


def write_gains(
    paths: ModelPaths,
    parts: dict[str, Path],
    tokenizer,
    data: Path,
    needs: Collection[str] | None = None,
) -> dict[str, dict[int, float]]:
    """Write the gain of each draft size into a file beside each model; returns the curves by drafter. parts: other
    drafters, each by the name of the drafter that it can replace. needs: only drafters that need one of these models."""
    texts = probe_texts(tokenizer, probe_prompts(tokenizer, data, GAIN_PROMPTS))
    found = gains.write(paths, texts, NEW_TOKENS, needs)
    for need, part in parts.items():
        if needs is None or need in needs:
            gains.write(paths.with_parts({need: str(part)}), texts, NEW_TOKENS, {need})
    return found


def summaries(models: ModelPaths, cls, prompts: Iterable[str], new_tokens: int) -> list[dict]:
    """Summary lines of greedy runs of the engine with the drafter's usual size, the same on every machine."""
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


def runs(
    models: ModelPaths, prompts: dict[str, list[str]], new_tokens: int, need: str | None = None
) -> dict:
    """workload -> drafter of `SHOWN` -> mean accepted tokens (all runs together) and acceptance by depth. need: only the
    drafters that need this model."""
    found: dict[str, dict] = {}
    for workload, some in prompts.items():
        found[workload] = {}
        for cls in (drafters()[key] for key in SHOWN if key in drafters()):
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


def measure(models: dict, paths: ModelPaths, parts: dict[str, Path], tokenizer, data: Path) -> dict:
    """models: opened models by name; paths: their folders, for the engine to open; parts: other drafters, each by the
    name of the drafter that it can replace."""
    prompts = probe_prompts(tokenizer, data, PER_WORKLOAD)
    shown = {**prompts, "chat": chat_prompts(tokenizer)} if tokenizer.chat_template else prompts
    texts = probe_texts(tokenizer, prompts)
    found = {
        "parameters": {name: parameter_count(model) for name, model in models.items()},
        "target": evaluate.report(models["target"], tokenizer, data, per_workload=20),
        "draft": evaluate.report(models["draft"], tokenizer, data, per_workload=20),
        "operations": evaluate.operations_report(models["target"], tokenizer, data, count=25),
        "runs": runs(paths, texts, NEW_TOKENS),
        "parts": {},
        "samples": samples(models["target"], tokenizer, shown),
    }
    for need, part in parts.items():
        other = paths.with_parts({need: str(part)})
        found["parts"][part.name] = runs(other, texts, NEW_TOKENS, need)
    return found
