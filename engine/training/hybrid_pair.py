"""The recipe `hybrid`: trains a target with state-space layers and a draft model for it, with the family's tokenizer
and texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, BambaConfig, LlamaForCausalLM

from engine.core.options import resolve
from engine.methods import drafters
from engine.model.language_model import LanguageModel
from engine.parts.loading import Models
from engine.parts.opening import load_language_model
from engine.training.checkpoint import export_model
from engine.training.common import need_data, say
from engine.training.distill import MixedWindows, draft_loss, read
from engine.training.gains import tokens_a_step
from engine.training.loop import Budget, fit
from engine.training.new_models import MAX_POSITIONS, draft_config, parameter_count
from engine.training.outlay import told_time
from engine.training.packing import Mixer, windows
from engine.training.tokenizer import load_tokenizer

DRAFT = {
    "layers": 2,
    "hidden_size": 96,
    "intermediate_size": 256,
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
}
LENGTH = 256  # tokens of a window
MINUTES = 50
MEASURED_TEXTS, MEASURED_PROMPTS, NEW = 8, 4, 48
MEASURED_WITH = ("chain", "stree")
"""The drafters in the table of figures: the plain chain, and the drafter for which this pair of models is made."""


def hybrid_config(vocabulary_size: int, eos: int, **changes) -> BambaConfig:
    """The target's configuration: Mamba-2 layers, with attention in every third layer. It has about 2.4 M parameters;
    a larger target would be too slow to learn from enough text in the time."""
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


def hybrid(args) -> None:
    """The recipe `hybrid`: writes the target to <models>/families/hybrid and its draft model to parts/draft in that
    folder, and prints the table of figures."""
    need_data(args)
    tokenizer = load_tokenizer(args.models / "target")
    budget = Budget.of(args, MINUTES)
    work = args.checkpoints / "hybrid"
    pair = train_pair(tokenizer, args.data, work, PairPlan(), budget, args.seed)
    folder = args.models / "families" / "hybrid"
    export_pair(pair, folder, tokenizer)
    say(pair_table(folder, args.data, args.seed + 1))


@dataclass(frozen=True)
class PairPlan:
    """The plan for training the target and the draft model. target: changes to the target's shape. draft: the draft
    model's shape. windows: how many windows of ``length`` tokens there are; the training goes through them again and
    again. rows: windows per step. share: the target's share of the time."""

    target: Mapping = field(default_factory=dict)
    draft: Mapping = field(default_factory=lambda: DRAFT)
    length: int = LENGTH
    windows: int = 40_000
    rows: int = 8
    share: float = 0.75


def train_pair(
    tokenizer,
    data: Path,
    folder: Path,
    plan: PairPlan,
    budget: Budget,
    seed: int = 0,
    say=say,
) -> tuple[nn.Module, nn.Module]:
    """Train the target on the text, for its share of the budget, and then the draft model on the target's laws for the
    same text; returns both. folder: the folder of the checkpoints from which a stopped training resumes.

    Random weights, batches and schedule depend only on the seed and the budget. The memory and time that the target is
    expected to need are printed first.
    """
    torch.manual_seed(seed)
    vocabulary = len(tokenizer), tokenizer.eos_token_id
    target = AutoModelForCausalLM.from_config(hybrid_config(*vocabulary, **plan.target))
    draft = LlamaForCausalLM(draft_config(*vocabulary, **plan.draft))
    text = MixedWindows([windows(Mixer(tokenizer, data, seed), plan.length, seed)], plan.windows)

    def learn(index: int) -> tuple[Tensor, int]:
        tokens, counted = text.batch(index, plan.rows)
        return token_loss(target, tokens, counted), tokens.numel()

    def follow(index: int) -> tuple[Tensor, int]:
        tokens, counted = text.batch(index, plan.rows)
        return draft_loss(draft, read(target, tokens), tokens, counted), tokens.numel()

    say(f"hybrid: {parameter_count(target):,} parameters, and under 1 GB of memory")
    say(told_time(budget.part(plan.share), lambda: learn(0), plan.windows * plan.length))
    target.zero_grad()
    fit(target, learn, budget.part(plan.share), folder / "target.pt", say=say)
    target.requires_grad_(False)
    fit(draft, follow, budget.part(1 - plan.share), folder / "draft.pt", say=say)
    return target, draft


def export_pair(pair: tuple[nn.Module, nn.Module], folder: Path, tokenizer) -> None:
    for model, place in zip(pair, (folder, folder / "parts" / "draft"), strict=True):
        export_model(model, place, tokenizer)


def token_loss(model, tokens: Tensor, counted: Tensor) -> Tensor:
    """The model's mean cross-entropy over the counted tokens. tokens: int64 [B, T], B windows of T tokens. counted:
    bool [B, T], True for tokens whose prediction enters the loss."""
    logits = model(input_ids=tokens, use_cache=False).logits[:, :-1].float()
    losses = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="none")
    weights = counted[:, 1:].flatten().to(losses.dtype)
    return (losses * weights).sum() / weights.sum().clamp(min=1)


def pair_table(folder: Path, data: Path, seed: int, length: int = LENGTH) -> str:
    """A table: how well the target in ``folder`` and the draft model in ``folder``/parts/draft predict unseen text, and
    how many tokens per step the drafters of ``MEASURED_WITH`` give. seed: the seed of the unseen text."""
    target, draft = (
        load_language_model(str(place)) for place in (folder, folder / "parts" / "draft")
    )
    stream = windows(Mixer(target.tokenizer, data, seed), length, seed)
    texts = [next(stream)[0].tolist() for _ in range(MEASURED_TEXTS)]
    lines = [f"{'':24} {'nats a token':>12}"]
    for name, model in (("target", target), ("draft", draft)):
        mean = sum(_surprise(model, text) for text in texts) / len(texts)
        lines.append(f"{name:24} {mean:12.3f}")
    lines.append(f"{'':24} {'tokens a step':>13}")
    prompts = [text[: length // 2] for text in texts[:MEASURED_PROMPTS]]
    models = Models(target, {"draft": draft})
    for cls in (drafters()[key] for key in MEASURED_WITH if key in drafters()):
        mean = tokens_a_step(cls, resolve(cls.key, cls.options, {}), models, prompts, NEW)
        lines.append(f"{cls.key:24} {mean:13.2f}")
    return "\n".join(lines)


def _surprise(model: LanguageModel, text: list[int]) -> float:
    logits, _ = model.session(len(text)).feed(text[:-1], range(-1, len(text) - 2))
    return float(F.cross_entropy(logits.float(), torch.tensor(text[1:])))
