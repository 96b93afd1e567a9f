"""A pair of the 100 M class, trained within minutes on a GPU and measured there.

The embedded family is too small for this: on a large GPU, kernel launches outweigh its products; and with random
weights nothing is accepted. This pair has the family's tokenizer and texts, a target of about 104 M parameters and a
draft of 4 M that learns the target's distribution. It is not shipped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import LlamaForCausalLM

from engine.training.checkpoint import export_model
from engine.training.distill import draft_loss, read
from engine.training.loop import fit
from engine.training.new_models import draft_config, target_config
from engine.training.packing import Mixer, windows
from engine.training.training_budget import Budget

HEADS = {"num_key_value_heads": 4, "head_dim": 64}


@dataclass(frozen=True)
class PairPlan:
    """target, draft: changes to the family's shapes, the number of layers included. windows: how many windows of
    ``length`` tokens are read in a cycle, ``rows`` per step. share: the target's share of the budget."""

    target: dict = field(
        default_factory=lambda: {
            "layers": 16,
            "hidden_size": 768,
            "intermediate_size": 2048,
            "num_attention_heads": 12,
            **HEADS,
        }
    )
    draft: dict = field(
        default_factory=lambda: {
            "layers": 4,
            "hidden_size": 256,
            "intermediate_size": 704,
            "num_attention_heads": 4,
            **HEADS,
        }
    )
    length: int = 512
    windows: int = 12_000
    rows: int = 64
    share: float = 0.7


def token_loss(model, tokens: Tensor, counted: Tensor) -> Tensor:
    """Mean cross-entropy over the counted tokens. tokens int64 [B, T], counted bool [B, T]."""
    logits = model(input_ids=tokens, use_cache=False).logits[:, :-1].float()
    losses = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="none")
    weights = counted[:, 1:].flatten().to(losses.dtype)
    return (losses * weights).sum() / weights.sum().clamp(min=1)


class Windows:
    """The training text on disk, read in order, in a cycle."""

    def __init__(self, folder: Path, tokenizer, data: Path, length: int, count: int, seed: int):
        path = folder / f"windows-{length}-{count}-{seed}.npz"
        folder.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            stream = windows(Mixer(tokenizer, data, seed), length, seed)
            rows = [next(stream) for _ in range(count)]
            tokens, counted = (np.stack(column) for column in zip(*rows, strict=True))
            temporary = path.with_suffix(".tmp.npz")
            np.savez(temporary, tokens=tokens, counted=counted)
            temporary.replace(path)
        with np.load(path) as saved:
            self.tokens, self.counted = saved["tokens"], saved["counted"]

    def batch(self, start: int, rows: int) -> tuple[Tensor, Tensor]:
        index = np.arange(start, start + rows) % len(self.tokens)
        tokens = torch.from_numpy(self.tokens[index].astype(np.int64))
        return tokens, torch.from_numpy(self.counted[index])


def train_pair(
    tokenizer,
    data: Path,
    folder: Path,
    budget: Budget,
    device: torch.device,
    plan: PairPlan | None = None,
    seed: int = 0,
    say=print,
) -> None:
    """Write ``folder``/target and ``folder``/draft; their checkpoints and windows lie beside them. budget: for both.

    A stopped training resumes. Random weights, batches and schedule depend on the seed and the budget alone.
    """
    plan = plan or PairPlan()
    torch.manual_seed(seed)
    known = len(tokenizer), tokenizer.eos_token_id
    target = LlamaForCausalLM(target_config(*known, **plan.target)).to(device)
    draft = LlamaForCausalLM(draft_config(*known, **plan.draft)).to(device)
    text = Windows(folder, tokenizer, data, plan.length, plan.windows, seed)
    fit_pair(target, draft, text, plan.rows, plan.share, folder, budget, say)
    export_model(target, folder / "target", tokenizer)
    export_model(draft, folder / "draft", tokenizer)


def fit_pair(
    target: nn.Module,
    draft: nn.Module,
    text: Windows,
    rows: int,
    share: float,
    folder: Path,
    budget: Budget,
    say=print,
) -> None:
    """Train both in place: the target on the text for this share of the budget, then the draft on the target's
    distributions for the text. rows: windows per step. The checkpoints lie in ``folder``."""
    device = next(target.parameters()).device

    def batch(index: int) -> tuple[Tensor, Tensor]:
        tokens, counted = text.batch(index * rows, rows)
        return tokens.to(device), counted.to(device)

    def learn(index: int) -> tuple[Tensor, int]:
        tokens, counted = batch(index)
        return token_loss(target, tokens, counted), tokens.numel()

    def follow(index: int) -> tuple[Tensor, int]:
        tokens, counted = batch(index)
        return draft_loss(draft, read(target, tokens), tokens, counted), tokens.numel()

    fit(target, learn, budget.part(share), folder / "target.pt", say=say)
    target.requires_grad_(False)
    fit(draft, follow, budget.part(1 - share), folder / "draft.pt", say=say)
