"""All figures of the family in one dictionary: what the model card quotes."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from pathlib import Path

from engine.parts.loading import ModelPaths
from engine.training import evaluate, family_runs, gains
from engine.training.corpus import read_corpora
from engine.training.generators import MAKERS, examples
from engine.training.generators.words import Vocabulary
from engine.training.new_models import parameter_count

NEW_TOKENS = 96
PER_WORKLOAD = 8
GAIN_PROMPTS = 4  # per workload; each is written once for every drafter and every draft size
SAMPLES = 5
TEMPERATURE = 0.8


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
    """What each draft size gains, into a file beside each model; returns the curves by drafter. parts: other drafters,
    each by the name of the drafter that it can replace. needs: only drafters that need one of these models."""
    texts = probe_texts(tokenizer, probe_prompts(tokenizer, data, GAIN_PROMPTS))
    found = gains.write(paths, texts, NEW_TOKENS, needs)
    for need, part in parts.items():
        if needs is None or need in needs:
            gains.write(paths.with_parts({need: str(part)}), texts, NEW_TOKENS, {need})
    return found


def measure(models: dict, paths: ModelPaths, parts: dict[str, Path], tokenizer, data: Path) -> dict:
    """models: opened models by name; paths: their folders, for the engine to open; parts: other drafters, each by the
    name of the drafter that it can replace."""
    prompts = probe_prompts(tokenizer, data, PER_WORKLOAD)
    shown = {**prompts, "chat": chat_prompts(tokenizer)} if tokenizer.chat_template else prompts
    texts = probe_texts(tokenizer, prompts)
    found = {
        "parameters": {name: parameter_count(model) for name, model in models.items()},
        "target": evaluate.report(models["target"], tokenizer, data, per_workload=20, copies=50),
        "draft": evaluate.report(models["draft"], tokenizer, data, per_workload=20, copies=4),
        "operations": evaluate.operations_report(models["target"], tokenizer, data, count=25),
        "runs": family_runs.measure(paths, texts, NEW_TOKENS),
        "parts": {},
        "samples": samples(models["target"], tokenizer, shown),
    }
    for need, part in parts.items():
        other = paths.with_parts({need: str(part)})
        found["parts"][part.name] = family_runs.measure(other, texts, NEW_TOKENS, need)
    return found
