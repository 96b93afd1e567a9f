"""The recipe `experts`: trains two targets of equal size with many small experts in each layer
(``engine.model.experts``). They differ only in how the experts for a token are chosen.

The first target, like BlockFFN, learns to use the same experts for neighbouring tokens. Besides the cross-entropy of
the text, its loss has a term for the locality of the choice, and one for the number of experts that a chunk of text
uses. The second target learns to use all experts equally often, like most mixtures of experts. Both start with the
embeddings and the attention of the family's draft model, and learn from the same text.

Letters in shapes: B windows, T tokens of each, E experts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import LlamaForCausalLM

from engine.model.experts import ExpertsConfig, ExpertsForCausalLM, outputs_of
from engine.parts.files import halve
from engine.parts.opening import load_language_model
from engine.sizes.expert_use import idle, used
from engine.training.checkpoint import export_model
from engine.training.common import need_data, open_model, say
from engine.training.distill import MixedWindows
from engine.training.evaluate import held_out_documents
from engine.training.generators import MAKERS
from engine.training.hybrid_pair import token_loss
from engine.training.loop import Budget, fit
from engine.training.new_models import parameter_count
from engine.training.packing import Encoder, Mixer, windows
from engine.training.tokenizer import load_tokenizer

TARGETS = {"experts": 0, "experts-topk": 8}
"""Name of the model family -> how many experts each token uses. 0 stands for BlockFFN, where the scores of the experts
decide how many."""
MINUTES = 40  # for both targets together
MATCHING = 0.5  # the share of the time in which the experts learn to compute the outputs of the draft model's layers
RATES = {"muon_rate": 5e-3, "adam_rate": 1e-3}  # learning rates after the matching
CHUNK = 64  # tokens of a chunk
SHARPNESS = 100.0  # steepness of the smooth step from an unused expert to a used one
LOCALITY, CHUNKS, UNUSED, BALANCE = 5e-4, 0.5, 1.0, 1e-2
"""The weights in the loss of ``locality``, ``chunk_use``, ``unused`` and ``balance_loss``, relative to the
cross-entropy of the text."""
LEAST = 0.1  # the score that every expert should reach somewhere in a batch
AIM = 0.2
"""A chunk adds to the loss only if it uses more than this share of the experts. (The paper instead changes the weight
of this term during the training.)"""
MEASURED = 12  # held-out documents of each workload
LONGEST = 256  # the most tokens read of a document


@dataclass(frozen=True)
class ExpertsPlan:
    """The plan of a training. changes: to the shape of the target. windows: how many windows of ``length`` tokens
    there are; the training goes through them again and again. rows: windows per step."""

    changes: Mapping = field(default_factory=dict)
    length: int = 256
    windows: int = 16_000
    rows: int = 4


def experts_config(draft: LlamaForCausalLM, per_token: int, **changes) -> ExpertsConfig:
    """The configuration of a target with about 1.6 M parameters: the draft model's shape, with experts in place of its
    feed-forward layers. per_token: a value of ``TARGETS``."""
    shape = {"num_experts": 48, "expert_size": 24, **changes}
    own = draft.config.to_dict() | shape
    for name in ("model_type", "architectures", "intermediate_size"):
        own.pop(name, None)
    inner = shape["num_experts"] * shape["expert_size"]
    return ExpertsConfig(**own, intermediate_size=inner, num_experts_per_tok=per_token)


def experts(args) -> None:
    """The recipe `experts`: writes both targets to <models>/families/NAME, and prints how well they predict held-out
    text."""
    need_data(args)
    tokenizer = load_tokenizer(args.models / "target")
    draft, plan = open_model(args, "draft"), ExpertsPlan()
    text = expert_text(tokenizer, args.data, plan, args.seed)
    budget = Budget.of(args, MINUTES)
    for name, per_token in TARGETS.items():
        work = args.checkpoints / name
        model = train_target(draft, text, plan, per_token, budget.part(1 / len(TARGETS)), work)
        export_target(model, args.models / "families" / name, tokenizer)
    say(target_table([args.models / "families" / name for name in TARGETS], tokenizer, args.data))


def expert_text(tokenizer, data: Path, plan: ExpertsPlan, seed: int = 0) -> MixedWindows:
    return MixedWindows([windows(Mixer(tokenizer, data, seed), plan.length, seed)], plan.windows)


def train_target(
    draft: LlamaForCausalLM,
    text: MixedWindows,
    plan: ExpertsPlan,
    per_token: int,
    budget: Budget,
    work: Path,
    say=say,
) -> ExpertsForCausalLM:
    """Train a target on the text within the budget, and return it. per_token: a value of ``TARGETS``. work: the folder
    of the checkpoints, from which a stopped training resumes."""
    torch.manual_seed(0)
    model = ExpertsForCausalLM(experts_config(draft, per_token, **plan.changes))
    begun = {n: t for n, t in draft.state_dict().items() if ".mlp." not in n}
    model.load_state_dict(begun, strict=False)
    layers = nn.ModuleList(layer.mlp for layer in model.model.layers)
    norms = [layer.post_attention_layernorm for layer in draft.model.layers]
    dense = [layer.mlp for layer in draft.model.layers]

    def beside(scores: Sequence[Tensor]) -> Tensor:
        return balance_loss(scores, per_token) if per_token else sharing_loss(scores)

    def match(index: int) -> tuple[Tensor, int]:
        tokens, _ = text.batch(index, plan.rows)
        with torch.no_grad(), outputs_of(norms) as inputs, outputs_of(dense) as outputs:
            draft.model(input_ids=tokens, use_cache=False)
        with outputs_of(gate.scores for gate in model.gates) as scores:
            predicted = [layer(rows) for layer, rows in zip(layers, inputs, strict=True)]
        missed = [F.mse_loss(a, b) / b.var() for a, b in zip(predicted, outputs, strict=True)]
        return sum(missed) / len(missed) + beside(scores), tokens.numel()

    def learn(index: int) -> tuple[Tensor, int]:
        tokens, counted = text.batch(index, plan.rows)
        with outputs_of(gate.scores for gate in model.gates) as scores:
            loss = token_loss(model, tokens, counted)
        return loss + beside(scores), tokens.numel()

    say(f"{work.name}: {parameter_count(model):,} parameters, and under 1 GB of memory")
    fit(layers, match, budget.part(MATCHING), work / "layers.pt", say=say)
    fit(model, learn, budget.part(1 - MATCHING), work / "model.pt", say=say, **RATES)
    return model


def sharing_loss(scores: Sequence[Tensor]) -> Tensor:
    """The weighted sum of ``locality``, ``chunk_use`` (BlockFFN's two losses) and ``unused``, averaged over the
    layers. scores: for each layer, the scores [B, T, E] of its experts before the ReLU."""
    losses = ((LOCALITY, locality), (CHUNKS, chunk_use), (UNUSED, unused))
    return sum(weight * loss(layer) for weight, loss in losses for layer in scores) / len(scores)


def locality(scores: Tensor) -> Tensor:
    """The cross-entropy between the set of experts that a token uses and the set that the token before it uses. scores:
    the scores of one layer's experts, [B, T, E]."""
    sharp = SHARPNESS * scores
    return F.binary_cross_entropy_with_logits(sharp[:, 1:], sharp[:, :-1].sigmoid())


def chunk_use(scores: Tensor) -> Tensor:
    """By how much the expected share of experts that a chunk uses exceeds ``AIM``; 0 if it does not. For the
    expectation, each token draws one expert with chances in proportion to its scores. scores: the scores of one layer's
    experts, [B, T, E]."""
    active = scores.relu()
    shares = active / active.sum(-1, keepdim=True).clamp(min=1e-6)
    chunk = min(CHUNK, scores.shape[1])
    whole = scores.shape[1] // chunk * chunk
    spared = torch.log1p(-shares[:, :whole].clamp(max=0.999)).unflatten(1, (-1, chunk))
    return ((1 - spared.sum(2).exp()).mean() - AIM).relu()


def unused(scores: Tensor) -> Tensor:
    """A loss for experts whose largest score in the batch is below ``LEAST``. Without it, in so short a training, most
    experts would fall out of use for good, and all tokens would use the few others. scores: the scores of one layer's
    experts, [B, T, E]."""
    return (LEAST - scores.flatten(0, 1).amax(0)).relu().mean()


def balance_loss(scores: Sequence[Tensor], per_token: int) -> Tensor:
    """The load-balancing loss of mixtures of experts (Switch Transformer, arXiv 2101.03961), averaged over the layers
    and multiplied by ``BALANCE``. Without this factor, it is 1 if all experts are used equally often. scores: as in
    ``sharing_loss``."""
    losses = []
    for layer in scores:
        rows = layer.flatten(0, 1)
        chosen = torch.zeros_like(rows).scatter(-1, rows.topk(per_token, -1).indices, 1.0)
        often = chosen.mean(0) / per_token
        losses.append(rows.shape[-1] * (often * rows.softmax(-1).mean(0)).sum())
    return BALANCE * sum(losses) / len(losses)


def export_target(model: ExpertsForCausalLM, folder: Path, tokenizer) -> None:
    """Write the model, with its matrices in 8 bits, and the tokenizer to a folder."""
    export_model(model, folder, tokenizer)
    halve(folder)


def target_table(folders: Sequence[Path], tokenizer, data: Path) -> str:
    """A table with a line for each target. The columns are: for each workload, the share of next tokens that the
    target predicts right; the share of experts that a token does not use; and the share of experts that none of 8
    neighbouring tokens uses."""
    encode, documents = Encoder(tokenizer), held_out_documents(data, MEASURED)
    kinds = ("story", *MAKERS)
    lines = [f"{'':16}" + "".join(f"{kind:>12}" for kind in (*kinds, "idle, 1", "idle, 8"))]
    for folder in folders:
        model, cells, texts = load_language_model(str(folder)), [], []
        for kind in kinds:
            right = []
            for read in map(encode, documents[kind]):
                text = read.tokens[:LONGEST].tolist()
                logits, _ = model.session(len(text)).feed(text, range(-1, len(text) - 1))
                hits = logits[:-1].argmax(-1) == torch.tensor(text[1:])
                right.append(hits[torch.from_numpy(read.counted[1:LONGEST])])
                texts.append(text)
            cells.append(torch.cat(right).float().mean().item())
        for rows in (1, 8):
            shares = [idle(used(model, text), rows) for text in texts if len(text) >= 8]
            cells.append(sum(shares) / len(shares))
        lines.append(f"{folder.name:16}" + "".join(f"{cell:12.3f}" for cell in cells))
    return "\n".join(lines)
