"""All figures of the family in one dictionary: what the model card quotes."""

from __future__ import annotations

import itertools
from pathlib import Path

from . import acceptance, evaluate
from .corpus import read_corpora
from .generators import MAKERS, examples
from .generators.words import Vocabulary
from .models import parameter_count

CHAIN_LENGTH = 4
NEW_TOKENS = 96
SAMPLES = 5


def probe_prompts(tokenizer, data: Path, per_workload: int) -> dict[str, list[list[int]]]:
    """Held-out prompts as token ids: openings of validation stories, held-out generator prompts."""
    stories = read_corpora(data, "valid")["story"][:per_workload]
    found = {"story": [tokenizer(s).input_ids[:12] for s in stories]}
    for workload in MAKERS:
        stream = examples(workload, 2, Vocabulary(), held_out=True)
        rows = itertools.islice(stream, per_workload)
        found[workload] = [tokenizer(e.prompt).input_ids for e in rows]
    return found


def accepted(models: dict, texts: list[tuple[int, list[int]]]) -> dict[str, float]:
    """Mean accepted tokens, greedy, of the chain and of the block. texts: (prompt length, ids)."""
    target, draft, diffusion = models["target"], models["draft"], models["diffusion"]
    found = {
        f"chain of {CHAIN_LENGTH}": [
            acceptance.chain_matches(draft, ids, start, CHAIN_LENGTH) for start, ids in texts
        ],
        f"block of {diffusion.config.block_size}": [
            acceptance.block_matches(diffusion, target, ids, start) for start, ids in texts
        ],
    }
    return {
        name: round(sum(map(acceptance.mean_accepted, matches)) / len(matches), 2)
        for name, matches in found.items()
    }


def sample(tokenizer, start: int, ids: list[int]) -> dict[str, str]:
    return {
        "prompt": tokenizer.decode(ids[:start]),
        "answer": tokenizer.decode(ids[start:], skip_special_tokens=True),
    }


def measure(models: dict, tokenizer, data: Path, per_workload: int = 8) -> dict:
    texts = {
        workload: [
            (len(p), acceptance.greedy_text(models["target"], p, NEW_TOKENS)) for p in prompts
        ]
        for workload, prompts in probe_prompts(tokenizer, data, per_workload).items()
    }
    return {
        "parameters": {name: parameter_count(model) for name, model in models.items()},
        "target": evaluate.report(models["target"], tokenizer, data, per_workload=20, copies=25),
        "draft": evaluate.report(models["draft"], tokenizer, data, per_workload=20, copies=4),
        "mean accepted": {w: accepted(models, t) for w, t in texts.items()},
        "samples": {w: [sample(tokenizer, *t) for t in ts[:SAMPLES]] for w, ts in texts.items()},
    }
