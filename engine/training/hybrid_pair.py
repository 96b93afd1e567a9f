"""A target with state-space and attention layers, and its draft, trained within an hour on two cores.

The target is a Bamba: Mamba-2 layers, with attention in every third. It has the family's tokenizer and texts. The draft
is a small Llama that learns the target's distribution. A stopped training resumes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor
from transformers import BambaConfig, BambaForCausalLM, LlamaForCausalLM

from engine.training.checkpoint import export_model
from engine.training.large_pair import Windows, fit_pair, token_loss
from engine.training.measured_pair import pair_table
from engine.training.new_models import MAX_POSITIONS, draft_config, parameter_count
from engine.training.outlay import NUMBER, told_time
from engine.training.training_budget import Budget

MINUTES = 50
DRAFT = {
    "layers": 2,
    "hidden_size": 96,
    "intermediate_size": 256,
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
}
FACTOR = 12  # numbers per token that a layer keeps for the backward pass, in widths of the model


def hybrid_config(vocabulary_size: int, eos: int, **changes) -> BambaConfig:
    """About 2.4 M parameters: more would not have read enough text within the time."""
    shape = {
        "hidden_size": 160,
        "intermediate_size": 320,
        "num_hidden_layers": 6,
        "attn_layer_indices": [2, 5],
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "mamba_n_heads": 5,
        "mamba_d_head": 64,
        "mamba_d_state": 32,
        "mamba_n_groups": 1,
        "mamba_chunk_size": 32,
    }
    return BambaConfig(
        vocab_size=vocabulary_size,
        max_position_embeddings=MAX_POSITIONS,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=eos,
        pad_token_id=eos,
        dtype="float32",
        z_loss_coefficient=0.0,
        **{**shape, **changes},
    )


@dataclass(frozen=True)
class HybridPlan:
    """target, draft: changes to the usual shapes. windows: how many windows of ``length`` tokens are read in a cycle,
    ``rows`` per step. share: the target's share of the budget."""

    target: dict = field(default_factory=dict)
    draft: dict = field(default_factory=dict)
    length: int = 256
    windows: int = 40_000
    rows: int = 8
    share: float = 0.75


def train_hybrid(
    tokenizer,
    data: Path,
    folder: Path,
    results: Path,
    budget: Budget,
    plan: HybridPlan | None = None,
    seed: int = 0,
    say=print,
) -> None:
    """Write the target to ``results`` and the draft to ``results``/parts/draft; checkpoints and windows go to
    ``folder``. budget: for both.

    Prints the expected memory and time first, and a table of the finished pair.
    """
    plan = plan or HybridPlan()
    torch.manual_seed(seed)
    known = len(tokenizer), tokenizer.eos_token_id
    target = BambaForCausalLM(hybrid_config(*known, **plan.target))
    draft = LlamaForCausalLM(draft_config(*known, **{**DRAFT, **plan.draft}))
    text = Windows(folder, tokenizer, data, plan.length, plan.windows, seed)
    say(told_memory(target, plan.rows * plan.length))

    def batch() -> tuple[Tensor, int]:
        tokens, counted = text.batch(0, plan.rows)
        return token_loss(target, tokens, counted), tokens.numel()

    say(told_time(budget.part(plan.share), batch, plan.windows * plan.length))
    target.zero_grad()
    fit_pair(target, draft, text, plan.rows, plan.share, folder, budget, say)
    export_model(target, results, tokenizer)
    export_model(draft, results / "parts" / "draft", tokenizer)
    say(pair_table(results, data, plan.length, seed + 1))


def told_memory(target: BambaForCausalLM, tokens: int) -> str:
    """tokens: per batch. The target counts four times, with its gradient and two moments; the batch counts with the
    numbers that its layers keep, and twice its logits."""
    config = target.config
    model = 4 * NUMBER * parameter_count(target)
    kept = config.num_hidden_layers * FACTOR * config.hidden_size + 2 * config.vocab_size
    need = model + NUMBER * tokens * kept
    return f"memory: about {need / 1e9:,.2f} GB (the target, its gradients and moments {model / 1e9:,.2f} GB)"
