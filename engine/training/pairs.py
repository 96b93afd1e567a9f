"""Pairs of a target and a draft that learns from it, with the family's tokenizer and texts: ``hybrid`` has state-space
layers and ships; ``large`` is of the 100 M class, to be measured on a GPU.

The embedded family is too small for a GPU, where kernel launches outweigh its products; and with random weights nothing
is accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, BambaConfig, LlamaForCausalLM, PreTrainedConfig

from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.loops import run_loop
from engine.methods import drafters
from engine.model.language_model import LanguageModel
from engine.parts.loading import Models
from engine.parts.opening import load_language_model
from engine.rules import verifier
from engine.training.checkpoint import export_model
from engine.training.common import UserError, need_data, say
from engine.training.distill import MixedWindows, draft_loss, read
from engine.training.loop import Budget, fit
from engine.training.new_models import (
    MAX_POSITIONS,
    draft_config,
    parameter_count,
    target_config,
)
from engine.training.outlay import NUMBER, told_time
from engine.training.packing import Mixer, windows
from engine.training.tokenizer import load_tokenizer

FACTOR = 12  # numbers per token that a layer keeps for the backward pass, in widths of the model
HEADS = {"num_key_value_heads": 4, "head_dim": 64}
MEASURED_TEXTS, MEASURED_PROMPTS, NEW = 8, 4, 48
MEASURED_WITH = ("chain", "stree")
"""The drafters of the hybrid pair's table: the usual one, and the one that the pair is made for."""


def hybrid_config(vocabulary_size: int, eos: int, **changes) -> BambaConfig:
    """Mamba-2 layers, with attention in every third; about 2.4 M parameters: more would not have read enough text within
    the time."""
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
class PairPlan:
    """config: makes the target's. target, draft: changes to the usual shapes. windows: how many windows of ``length``
    tokens are read in a cycle, ``rows`` per step. minutes: the usual budget of both; share: the target's of it."""

    config: Callable[..., PreTrainedConfig]
    target: Mapping
    draft: Mapping
    length: int
    windows: int
    rows: int
    minutes: float
    share: float


HYBRID = PairPlan(
    hybrid_config,
    {},
    {
        "layers": 2,
        "hidden_size": 96,
        "intermediate_size": 256,
        "num_attention_heads": 3,
        "num_key_value_heads": 1,
    },
    length=256,
    windows=40_000,
    rows=8,
    minutes=50,
    share=0.75,
)
LARGE = PairPlan(
    target_config,
    {
        "layers": 16,
        "hidden_size": 768,
        "intermediate_size": 2048,
        "num_attention_heads": 12,
        **HEADS,
    },
    {
        "layers": 4,
        "hidden_size": 256,
        "intermediate_size": 704,
        "num_attention_heads": 4,
        **HEADS,
    },
    length=512,
    windows=12_000,
    rows=64,
    minutes=4,
    share=0.7,
)


def hybrid(args) -> None:
    """The target -> <models>/families/hybrid, its draft -> parts/draft there; a table of the finished pair."""
    need_data(args)
    tokenizer = load_tokenizer(args.models / "target")
    budget = Budget.of(args, HYBRID.minutes)
    work = args.checkpoints / "hybrid"
    pair = train_pair(tokenizer, args.data, work, HYBRID, budget, args.seed)
    folder = args.models / "families" / "hybrid"
    export_pair(pair, (folder, folder / "parts" / "draft"), tokenizer)
    say(pair_table(folder, args.data, HYBRID.length, args.seed + 1))


def large_pair(args) -> None:
    """Both models -> <checkpoints>/large, which ship with nothing."""
    need_data(args)
    if not torch.cuda.is_available():
        raise UserError("the recipe `large-pair` needs a CUDA GPU; none was found")
    torch.set_float32_matmul_precision("high")
    tokenizer, folder = load_tokenizer(args.models / "target"), args.checkpoints / "large"
    budget = Budget.of(args, LARGE.minutes)
    pair = train_pair(tokenizer, args.data, folder, LARGE, budget, args.seed, "cuda")
    export_pair(pair, (folder / "target", folder / "draft"), tokenizer)


def train_pair(
    tokenizer,
    data: Path,
    folder: Path,
    plan: PairPlan,
    budget: Budget,
    seed: int = 0,
    device: str = "cpu",
    say=say,
) -> tuple[nn.Module, nn.Module]:
    """Target and draft: the target learns the text for its share of the budget, then the draft the target's
    distributions for the text. folder: of the checkpoints, from which a stopped training resumes.

    Random weights, batches and schedule depend on the seed and the budget alone. The expected memory and time of the
    target are printed first.
    """
    torch.manual_seed(seed)
    known = len(tokenizer), tokenizer.eos_token_id
    target = AutoModelForCausalLM.from_config(plan.config(*known, **plan.target)).to(device)
    draft = LlamaForCausalLM(draft_config(*known, **plan.draft)).to(device)
    text = MixedWindows([windows(Mixer(tokenizer, data, seed), plan.length, seed)], plan.windows)

    def batch(index: int) -> tuple[Tensor, Tensor]:
        tokens, counted = text.batch(index, plan.rows)
        return tokens.to(device), counted.to(device)

    def learn(index: int) -> tuple[Tensor, int]:
        tokens, counted = batch(index)
        return token_loss(target, tokens, counted), tokens.numel()

    def follow(index: int) -> tuple[Tensor, int]:
        tokens, counted = batch(index)
        return draft_loss(draft, read(target, tokens), tokens, counted), tokens.numel()

    say(told_memory(target, plan.rows * plan.length))
    say(told_time(budget.part(plan.share), lambda: learn(0), plan.windows * plan.length))
    target.zero_grad()
    fit(target, learn, budget.part(plan.share), folder / "target.pt", say=say)
    target.requires_grad_(False)
    fit(draft, follow, budget.part(1 - plan.share), folder / "draft.pt", say=say)
    return target, draft


def export_pair(pair: tuple[nn.Module, nn.Module], folders: tuple[Path, Path], tokenizer) -> None:
    for model, folder in zip(pair, folders, strict=True):
        export_model(model, folder, tokenizer)


def token_loss(model, tokens: Tensor, counted: Tensor) -> Tensor:
    """Mean cross-entropy over the counted tokens. tokens int64 [B, T], counted bool [B, T]."""
    logits = model(input_ids=tokens, use_cache=False).logits[:, :-1].float()
    losses = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="none")
    weights = counted[:, 1:].flatten().to(losses.dtype)
    return (losses * weights).sum() / weights.sum().clamp(min=1)


def told_memory(target: nn.Module, tokens: int) -> str:
    """tokens: per batch. The target counts four times, with its gradient and two moments; the batch counts with the
    numbers that its layers keep, and twice its logits."""
    config = target.config
    model = 4 * NUMBER * parameter_count(target)
    kept = config.num_hidden_layers * FACTOR * config.hidden_size + 2 * config.vocab_size
    need = model + NUMBER * tokens * kept
    return f"memory: about {need / 1e9:,.2f} GB (the target, its gradients and moments {model / 1e9:,.2f} GB)"


def pair_table(folder: Path, data: Path, length: int, seed: int) -> str:
    """How well the target in ``folder`` and the draft in ``folder``/parts/draft predict held-out text, and how many
    tokens a step gives. seed: of texts that neither has learnt from."""
    target, draft = (load_language_model(str(one)) for one in (folder, folder / "parts" / "draft"))
    stream = windows(Mixer(target.tokenizer, data, seed), length, seed)
    texts = [next(stream)[0].tolist() for _ in range(MEASURED_TEXTS)]
    lines = [f"{'':24} {'nats a token':>12}"]
    for name, model in (("target", target), ("draft", draft)):
        mean = sum(_surprise(model, text) for text in texts) / len(texts)
        lines.append(f"{name:24} {mean:12.3f}")
    lines.append(f"{'':24} {'tokens a step':>13}")
    prompts = [text[: length // 2] for text in texts[:MEASURED_PROMPTS]]
    for key in filter(drafters().__contains__, MEASURED_WITH):
        lines.append(f"{key:24} {tokens_a_step(target, draft, key, prompts):13.2f}")
    return "\n".join(lines)


def _surprise(model: LanguageModel, text: list[int]) -> float:
    logits, _ = model.session(len(text)).feed(text[:-1], range(-1, len(text) - 2))
    return float(F.cross_entropy(logits.float(), torch.tensor(text[1:])))


def tokens_a_step(target: LanguageModel, draft: LanguageModel, key: str, prompts: list) -> float:
    """Mean tokens per step over greedy texts after these prompts."""
    cls, tokens, steps = drafters()[key], 0, 0
    for prompt in prompts:
        own = cls.build(resolve(key, cls.options, {}), Models(target, {"draft": draft}))
        for step in run_loop(target, TextRequest(own, verifier("greedy"), Sampling(), prompt, NEW)):
            tokens, steps = tokens + len(step.output), steps + 1
    return tokens / max(steps, 1)
