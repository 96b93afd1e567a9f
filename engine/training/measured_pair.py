"""The results of a trained target and draft: how well both predict held-out text, and how many tokens a step gives."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.loops import run_loop
from engine.methods import drafter
from engine.model.language_model import LanguageModel
from engine.parts.loading import Models
from engine.parts.opening import load_language_model
from engine.rules import verifier
from engine.training.packing import Mixer, windows

WINDOWS, PROMPTS, NEW = 8, 4, 48


def pair_table(folder: Path, data: Path, length: int, seed: int) -> str:
    """The table for the target in ``folder`` and the draft in ``folder``/parts/draft. seed: of texts that neither has
    learnt from."""
    target, draft = (load_language_model(str(one)) for one in (folder, folder / "parts" / "draft"))
    stream = windows(Mixer(target.tokenizer, data, seed), length, seed)
    texts = [next(stream)[0].tolist() for _ in range(WINDOWS)]
    lines = [f"{'':24} {'nats a token':>12}"]
    for name, model in (("target", target), ("draft", draft)):
        lines.append(f"{name:24} {sum(_surprise(model, text) for text in texts) / WINDOWS:12.3f}")
    lines.append(f"{'':24} {'tokens a step':>13}")
    prompts = [text[: length // 2] for text in texts[:PROMPTS]]
    for key in ("chain", "stree"):
        lines.append(f"{key:24} {tokens_a_step(target, draft, key, prompts):13.2f}")
    return "\n".join(lines)


def _surprise(model: LanguageModel, text: list[int]) -> float:
    logits, _ = model.session(len(text)).feed(text[:-1], range(-1, len(text) - 2))
    follows: Tensor = torch.tensor(text[1:])
    return float(torch.nn.functional.cross_entropy(logits.float(), follows))


def tokens_a_step(target: LanguageModel, draft: LanguageModel, key: str, prompts: list) -> float:
    """Mean tokens per step over greedy texts after these prompts."""
    cls, tokens, steps = drafter(key), 0, 0
    for prompt in prompts:
        own = cls.build(resolve(key, cls.options, {}), Models(target, {"draft": draft}))
        for step in run_loop(target, TextRequest(own, verifier("greedy"), Sampling(), prompt, NEW)):
            tokens, steps = tokens + len(step.output), steps + 1
    return tokens / max(steps, 1)
