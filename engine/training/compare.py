"""Targets side by side, each from its folder: the table that decides whether a new one is
accepted."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

from engine.training.answers import same_result, share_right
from engine.training.corpus import PROMPTS, Document, make_vocabulary, read_corpora
from engine.training.evaluate import bits_per_byte
from engine.training.generators import arithmetic, edits, is_held_out, operations
from engine.training.packing import Encoder
from engine.training.selftext import continue_batch
from engine.training.tokenizer import load_tokenizer
from engine.training.unlikelihood import repeated_share

STORY_TOKENS = 160
DRAWN = 0.8  # temperature
SEEDS = 3  # of drawn stories
OPERATIONS = ("sort", "replace", "remove", "shuffle", "copy")


def story_prompts() -> list[str]:
    lines = (PROMPTS / "story.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line)["prompt"] for line in lines]


def repetition(model, tokenizer, temperature: float, seed: int = 0) -> float:
    """Mean share of repetition over the shipped story prompts."""
    torch.manual_seed(seed)
    prompts = [tokenizer(p).input_ids for p in story_prompts()]
    texts = continue_batch(model, prompts, STORY_TOKENS, temperature, tokenizer.eos_token_id)
    return sum(map(repeated_share, texts)) / len(texts)


def _held_out(make, seed: str, vocabulary, count: int) -> list[tuple[str, str]]:
    rng = random.Random(seed)
    drawn = (make(rng, vocabulary) for _ in itertools.count())
    return list(itertools.islice((p for p in drawn if is_held_out(p[0])), count))


def figures(folder: Path, data: Path, count: int) -> dict[str, float]:
    """The rows of the table for the target in this folder."""
    tokenizer = load_tokenizer(folder)
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    texts = read_corpora(data, "valid")
    vocabulary = make_vocabulary(texts)
    stories = [Document("story", "", text) for text in texts["story"]]
    drawn = [repetition(model, tokenizer, DRAWN, seed) for seed in range(SEEDS)]
    found = {
        "repeated 4-grams, greedy stories": repetition(model, tokenizer, 0.0),
        f"repeated 4-grams, temperature {DRAWN}": sum(drawn) / SEEDS,
        "bits per byte, held-out TinyStories": bits_per_byte(model, Encoder(tokenizer), stories),
    }
    for name, make in {"steps": arithmetic.in_steps, "word problems": arithmetic.story}.items():
        pairs = _held_out(make, f"compare/{name}", vocabulary, count)
        found[f"sums, {name}"] = share_right(model, tokenizer, pairs, same_result, spare=24)
    for name in OPERATIONS:
        pairs = _held_out(getattr(operations, name), f"compare/{name}", vocabulary, count)
        found[name] = share_right(model, tokenizer, pairs)
    for make in edits.KINDS:
        name = f"edit: {make.__name__}"
        found[name] = share_right(
            model, tokenizer, _held_out(make, f"compare/{name}", vocabulary, count)
        )
    return found


def table(found: dict[str, dict[str, float]]) -> str:
    """Targets in the columns; counts of right answers as shares."""
    rows = next(iter(found.values()))
    lines = [["what", *found], ["---"] * (1 + len(found))]
    lines += [[row, *(f"{f[row]:.3f}" for f in found.values())] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
