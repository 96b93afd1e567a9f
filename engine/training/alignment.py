"""Compares divergences for aligning a draft model with its target.

For each divergence, a copy of the same draft model is trained on the same batches. The trained copies are then
measured on held-out text of the target.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.training.counted_acceptance import chain_matches, mean_accepted
from engine.training.distill import draft_loss, read
from engine.training.divergences import LOSSES, loss_named
from engine.training.loop import Budget, fit
from engine.training.selftext import sampling_of

CHAIN_LENGTH = 4
Text = tuple[int, list[int]]  # length of the prompt, all token ids


@torch.inference_mode()
def own_texts(
    target, prompts: list[list[int]], new_tokens: int, temperature: float, seed: int
) -> list[Text]:
    """The target's continuations of these prompts, as pairs (length of the prompt, tokens of the prompt and its
    continuation). Temperature 0 is greedy."""
    torch.manual_seed(seed)
    texts = []
    for prompt in prompts:
        ids = torch.tensor([prompt], device=target.device)
        out = target.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=new_tokens,
            **sampling_of(temperature),
        )
        texts.append((len(prompt), out[0].tolist()))
    return texts


@torch.inference_mode()
def overlap(draft, target, texts: list[Text]) -> float:
    """The mean of sum min(p, q) over all token positions of the answers: the share of tokens drawn from the draft
    model that the target accepts at temperature 1."""
    shares: list[Tensor] = []
    for start, ids in texts:
        tokens = torch.tensor([ids])
        p, q = (
            F.softmax(m(input_ids=tokens, use_cache=False).logits[0, start - 1 : -1], -1)
            for m in (target, draft)
        )
        shares.append(torch.minimum(p, q).sum(-1))
    return torch.cat(shares).mean().item()


def measure(draft, target, greedy: list[Text], sampled: list[Text]) -> dict[str, float]:
    """How well one draft model agrees with the target: numbers by name, measured on the target's own texts. greedy:
    texts at temperature 0. sampled: texts at temperature 1."""
    matches = [chain_matches(draft, ids, start, CHAIN_LENGTH) for start, ids in greedy]
    single = [chain_matches(draft, ids, start, 1) for start, ids in greedy]
    return {
        "kept at temperature 1": overlap(draft, target, sampled),
        "same favourite, greedy text": sum(map(sum, single)) / sum(map(len, single)),
        f"mean accepted, chain of {CHAIN_LENGTH}": sum(map(mean_accepted, matches)) / len(matches),
    }


def compare(
    start: nn.Module,
    target: nn.Module,
    batch: Callable[[int], tuple[Tensor, Tensor]],
    judge: Callable[[nn.Module], dict[str, float]],
    tokens: int,
    folder,
    say=print,
) -> Iterator[tuple[str, nn.Module, dict[str, float]]]:
    """Train a copy of the draft model `start` by each divergence, on `tokens` tokens. Yields for each divergence its
    name, the trained copy, and the figures that `judge` returns for the copy.

    batch(index) returns S windows of T tokens: tokens int64 [S, T], and counted bool [S, T], True for tokens that
    enter the loss. folder: for checkpoints.
    """
    for name in LOSSES:
        draft = copy.deepcopy(start)

        def loss_of(index: int, draft=draft, name=name) -> tuple[Tensor, int]:
            batch_tokens, counted = batch(index)
            divergence = loss_named(name, index)
            loss = draft_loss(draft, read(target, batch_tokens), batch_tokens, counted, divergence)
            return loss, batch_tokens.numel()

        path = folder / f"divergence-{name}.pt"
        fit(draft, loss_of, Budget(tokens=tokens), path, 0.01, 2e-3, say=say)
        figures = judge(draft)
        say(f"{name}: " + ", ".join(f"{k} {v:.3f}" for k, v in figures.items()))
        yield name, draft, figures
