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


def probe_prompts(tokenizer, data: Path, per_workload: int) -> dict[str, list[list[int]]]:
    """Held-out prompts as token ids: openings of validation stories and held-out generator prompts."""
    stories = read_corpora(data, "valid")["story"][:per_workload]
    found = {"story": [tokenizer(s).input_ids[:12] for s in stories]}
    for workload in MAKERS:
        stream = examples(workload, 2, Vocabulary(), held_out=True)
        found[workload] = [
            tokenizer(e.prompt).input_ids for e in itertools.islice(stream, per_workload)
        ]
    return found


def accepted(models: dict, tokenizer, prompts: list[list[int]]) -> dict[str, float]:
    """Mean accepted tokens, greedy, of the chain and of the block."""
    chain, block = [], []
    for prompt in prompts:
        text = acceptance.greedy_text(models["target"], prompt, NEW_TOKENS)
        chain.append(acceptance.chain_matches(models["draft"], text, len(prompt), CHAIN_LENGTH))
        block.append(
            acceptance.block_matches(models["diffusion"], models["target"], text, len(prompt))
        )
    return {
        f"chain of {CHAIN_LENGTH}": round(
            sum(map(acceptance.mean_accepted, chain)) / len(chain), 2
        ),
        f"block of {models['diffusion'].config.block_size}": round(
            sum(map(acceptance.mean_accepted, block)) / len(block), 2
        ),
    }


def samples(target, tokenizer, prompts: list[list[int]], count: int = 5) -> list[dict[str, str]]:
    """The first few, whatever they look like."""
    found = []
    for ids in prompts[:count]:
        prompt = tokenizer.decode(ids)
        found.append(
            {"prompt": prompt, "answer": evaluate.complete(target, tokenizer, prompt, NEW_TOKENS)}
        )
    return found


def measure(models: dict, tokenizer, data: Path, per_workload: int = 16) -> dict:
    prompts = probe_prompts(tokenizer, data, per_workload)
    return {
        "parameters": {name: parameter_count(model) for name, model in models.items()},
        "target": evaluate.report(models["target"], tokenizer, data, per_workload=24, copies=40),
        "draft": evaluate.report(models["draft"], tokenizer, data, per_workload=24, copies=4),
        "mean accepted": {w: accepted(models, tokenizer, p) for w, p in prompts.items()},
        "samples": {w: samples(models["target"], tokenizer, p) for w, p in prompts.items()},
    }
