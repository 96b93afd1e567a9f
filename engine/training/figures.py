"""All figures of the family in one dictionary: what the model card quotes."""

from __future__ import annotations

import itertools
from pathlib import Path

from . import evaluate, family_runs, gains
from .corpus import read_corpora
from .generators import MAKERS, examples
from .generators.words import Vocabulary
from .models import parameter_count

NEW_TOKENS = 96
SAMPLES = 5
TEMPERATURE = 0.8


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


def measure(models: dict, folder: Path, tokenizer, data: Path, per_workload: int = 8) -> dict:
    """models: the opened ones by name; folder: where they lie, for the engine to open."""
    prompts = probe_prompts(tokenizer, data, per_workload)
    texts = {w: [tokenizer.decode(ids) for ids in some] for w, some in prompts.items()}
    return {
        "parameters": {name: parameter_count(model) for name, model in models.items()},
        "target": evaluate.report(models["target"], tokenizer, data, per_workload=20, copies=50),
        "draft": evaluate.report(models["draft"], tokenizer, data, per_workload=20, copies=4),
        "operations": evaluate.operations_report(models["target"], tokenizer, data, count=25),
        "gains": gains.write(folder, texts, NEW_TOKENS),
        "runs": family_runs.measure(folder, texts, NEW_TOKENS),
        "samples": samples(models["target"], tokenizer, prompts),
    }
