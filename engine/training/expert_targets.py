"""The recipe `experts`: two targets of equal size with many small experts in each layer, which differ in how a row chooses
its experts alone (``engine.model.experts``).

BlockFFN's target learns to use the same experts for neighbouring tokens: beside the usual loss, one for the locality of
the choice and one for the experts that a chunk of the text uses in all. The other learns, as mixtures usually do, to use
all experts equally often. Both begin with the embeddings and the attention of the family's draft, and read the same text.
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
"""The families, and how many experts a row uses; 0: BlockFFN, where the scores decide."""
MINUTES = 40  # for both
MATCHING = 0.5  # of the time: the experts learn what the draft's layers compute
RATES = {"muon_rate": 5e-3, "adam_rate": 1e-3}  # afterwards
CHUNK = 64  # tokens
SHARPNESS = 100.0  # of the step from an unused expert to a used one
LOCALITY, CHUNKS, UNUSED, BALANCE = 5e-4, 0.5, 1.0, 1e-2
"""Weights of the losses beside that of the text."""
LEAST = 0.1  # score that every expert should have somewhere in a batch
AIM = 0.2
"""The share of the experts that a chunk may use without a loss. The paper changes the weight of this loss instead, as the
training goes on."""
MEASURED = 12  # held-out documents of each workload
LONGEST = 256  # tokens of them


@dataclass(frozen=True)
class ExpertsPlan:
    """changes: to the shape. windows: of ``length`` tokens, read in a cycle, ``rows`` per step."""

    changes: Mapping = field(default_factory=dict)
    length: int = 256
    windows: int = 16_000
    rows: int = 4


def experts_config(draft: LlamaForCausalLM, per_token: int, **changes) -> ExpertsConfig:
    """The draft's shape with experts in place of its feed-forward layers; about 1.6 M parameters."""
    shape = {"num_experts": 48, "expert_size": 24, **changes}
    own = draft.config.to_dict() | shape
    for name in ("model_type", "architectures", "intermediate_size"):
        own.pop(name, None)
    inner = shape["num_experts"] * shape["expert_size"]
    return ExpertsConfig(**own, intermediate_size=inner, num_experts_per_tok=per_token)


def experts(args) -> None:
    """Both targets -> <models>/families/NAME, and how well they predict held-out text."""
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
    """A target that has learned from the text within the budget. per_token: see ``TARGETS``. work: the folder of
    the checkpoints, from which a stopped training resumes."""
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
        with torch.no_grad(), outputs_of(norms) as given, outputs_of(dense) as wanted:
            draft.model(input_ids=tokens, use_cache=False)
        with outputs_of(gate.scores for gate in model.gates) as scores:
            made = [layer(rows) for layer, rows in zip(layers, given, strict=True)]
        missed = [F.mse_loss(a, b) / b.var() for a, b in zip(made, wanted, strict=True)]
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
    """BlockFFN's losses and one of our own, the mean over the layers. scores: [B, T, E] of each layer, before the ReLU."""
    losses = ((LOCALITY, locality), (CHUNKS, chunk_use), (UNUSED, unused))
    return sum(weight * loss(one) for weight, loss in losses for one in scores) / len(scores)


def locality(scores: Tensor) -> Tensor:
    """How much the experts of a token differ from those of the token before: the cross-entropy of using them."""
    sharp = SHARPNESS * scores
    return F.binary_cross_entropy_with_logits(sharp[:, 1:], sharp[:, :-1].sigmoid())


def chunk_use(scores: Tensor) -> Tensor:
    """The share of the experts, beyond ``AIM``, that some token of a chunk uses, where a token draws one expert by its
    scores."""
    active = scores.relu()
    shares = active / active.sum(-1, keepdim=True).clamp(min=1e-6)
    chunk = min(CHUNK, scores.shape[1])
    whole = scores.shape[1] // chunk * chunk
    spared = torch.log1p(-shares[:, :whole].clamp(max=0.999)).unflatten(1, (-1, chunk))
    return ((1 - spared.sum(2).exp()).mean() - AIM).relu()


def unused(scores: Tensor) -> Tensor:
    """A loss that is large for experts which no row of the batch comes near to using. Without it, as there is so
    little text, most experts would fall out of use for good, and all rows would use the others."""
    return (LEAST - scores.flatten(0, 1).amax(0)).relu().mean()


def balance_loss(scores: Sequence[Tensor], per_token: int) -> Tensor:
    """The usual loss of mixtures (Switch Transformer, arXiv 2101.03961): how unequally often the experts are used, 1 where
    all are alike; the mean over the layers."""
    found = []
    for one in scores:
        rows = one.flatten(0, 1)
        chosen = torch.zeros_like(rows).scatter(-1, rows.topk(per_token, -1).indices, 1.0)
        often = chosen.mean(0) / per_token
        found.append(rows.shape[-1] * (often * rows.softmax(-1).mean(0)).sum())
    return BALANCE * sum(found) / len(found)


def export_target(model: ExpertsForCausalLM, folder: Path, tokenizer) -> None:
    """Write the model with its matrices in 8 bits, and the tokenizer."""
    export_model(model, folder, tokenizer)
    halve(folder)


def target_table(folders: Sequence[Path], tokenizer, data: Path) -> str:
    """A table with a line for each target: the share of right next tokens by workload, and the share of experts that none of
    1 or 8 neighbouring tokens uses."""
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
                told = logits[:-1].argmax(-1) == torch.tensor(text[1:])
                right.append(told[torch.from_numpy(read.counted[1:LONGEST])])
                texts.append(text)
            cells.append(torch.cat(right).float().mean().item())
        for rows in (1, 8):
            shares = [idle(used(model, text), rows) for text in texts if len(text) >= 8]
            cells.append(sum(shares) / len(shares))
        lines.append(f"{folder.name:16}" + "".join(f"{cell:12.3f}" for cell in cells))
    return "\n".join(lines)
