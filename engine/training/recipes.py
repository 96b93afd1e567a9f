"""The recipes, in the order in which they are run. Each reads its inputs from folders and writes its output to one,
so each can run alone; those that train resume where they were stopped.

    tokenizer    corpora -> <checkpoints>/tokenizer
    target       corpora -> <models>/target
    text         target -> <checkpoints>/selftext.npz: what the target writes by itself
    draft        corpora -> <models>/draft
    divergences  which divergence aligns the draft best -> screen, <checkpoints>/divergences.json
    align        the target's distributions and hidden states -> <models>/draft, <models>/diffusion
    evaluate     held-out figures of all three -> screen, <checkpoints>/figures.json, <models>/README.md
    prompts      held-out prompts of the generators, in no text seen so far -> presets/prompts
    large-pair   corpora -> <checkpoints>/large/target and draft: a 100 M-class pair to be measured on a GPU; needs one
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable

import torch
from torch import nn
from transformers import AutoModelForCausalLM

from engine.parts.dflash_model import DFlashModel

from . import alignment, card, evaluate, figures, prompts, selftext
from .budget import Budget
from .checkpoint import export_model
from .corpus import available_mix, documents, make_vocabulary, read_corpora
from .diffusion import diffusion_config, diffusion_loss, random_anchors, start_from
from .distill import DIVERGENCES, MixedWindows, draft_loss, read
from .language import Plan, Stage, Trainer
from .large_pair import train_pair
from .loop import fit
from .models import draft_config, target_config
from .tokenizer import load_tokenizer, train_tokenizer

Recipe = Callable[[argparse.Namespace], None]
TARGET_PLAN = Plan(
    stages=(
        Stage(until=0.38, layers=3, length=256, rows=16),
        Stage(until=0.72, layers=6, length=256, rows=20),
        Stage(until=0.87, layers=6, length=512, rows=10),
        Stage(until=1.00, layers=6, length=1024, rows=5),
    )
)
CONTINUE_PLAN = Plan(
    stages=(
        Stage(until=0.85, layers=6, length=512, rows=10),
        Stage(until=1.00, layers=6, length=1024, rows=5),
    )
)
DRAFT_PLAN = Plan(
    stages=(
        Stage(until=0.85, layers=2, length=256, rows=16),
        Stage(until=1.0, layers=2, length=1024, rows=4),
    )
)
ALIGN_WINDOWS = 10_000


class UserError(Exception):
    """Said in one line; exit code 2."""


def say(text: str) -> None:
    print(text, flush=True)


def _tokenizer(args):
    path = args.checkpoints / "tokenizer"
    if not path.exists():
        raise UserError(f"no tokenizer in {path}: run the recipe `tokenizer` first")
    return load_tokenizer(path)


def _need_data(args) -> None:
    if not (args.data / "tinystories_train.txt").exists():
        raise UserError(
            f"no corpora in {args.data}: see engine/training/corpus.py for their public origins (--data)"
        )


def _model(args, name: str):
    path = args.models / name
    if not (path / "model.safetensors").exists():
        raise UserError(f"no model in {path}: run the recipe that makes it first")
    if name == "diffusion":
        return DFlashModel.from_pretrained(path)
    return AutoModelForCausalLM.from_pretrained(path).eval().requires_grad_(False)


def tokenizer(args) -> None:
    _need_data(args)
    texts = read_corpora(args.data)
    vocabulary, sample = make_vocabulary(texts), []
    for workload, share in available_mix(texts).items():
        characters = 0
        for document in documents(workload, texts, vocabulary, args.seed):
            sample.append(document.text)
            characters += len(document.text)
            if characters > share * 9e6:
                break
    train_tokenizer(sample).save_pretrained(args.checkpoints / "tokenizer")


def target(args) -> None:
    _need_data(args)
    tok = _tokenizer(args)

    def validate(model) -> str:
        return evaluate.as_line(evaluate.report(model, tok, args.data, per_workload=8, copies=10))

    trainer = Trainer(
        lambda layers: target_config(len(tok), tok.eos_token_id, layers),
        tok,
        CONTINUE_PLAN if args.start else TARGET_PLAN,
        Budget(minutes=args.minutes or 75),
        args.data,
        args.checkpoints,
        "target",
        args.seed,
        validate,
        say,
        args.start,
    )
    if args.early:
        export_model(trainer.run(stop_at=0.45), args.early, tok)
    export_model(trainer.run(), args.models / "target", tok)
    say(validate(trainer.model))


def text(args) -> None:
    _need_data(args)
    selftext.write(
        args.checkpoints / "selftext.npz",
        _model(args, "target"),
        _tokenizer(args),
        args.data,
        tokens=args.tokens or 400_000,
        seed=args.seed,
        minutes=args.minutes or 1e9,
        say=say,
    )


def draft(args) -> None:
    """The draft's start: plain text, as the target."""
    _need_data(args)
    tok = _tokenizer(args)
    trainer = Trainer(
        lambda layers: draft_config(len(tok), tok.eos_token_id, layers),
        tok,
        DRAFT_PLAN,
        Budget(minutes=args.minutes or 6),
        args.data,
        args.checkpoints,
        "draft-start",
        args.seed,
        None,
        say,
    )
    export_model(trainer.run(), args.models / "draft", tok)


def _windows(args, tok, seed: int) -> MixedWindows:
    """Training windows for the drafters: the target's own text and the corpora, in turn."""
    path = args.checkpoints / "selftext.npz"
    if not path.exists():
        raise UserError(f"no {path}: run the recipe `text` first")
    return MixedWindows(
        path, tok, args.data, length=256, count=ALIGN_WINDOWS, seed=args.seed + seed
    )


def divergences(args) -> None:
    """The draft's start, aligned with each divergence on the same tokens; the models themselves stay as they are."""
    _need_data(args)
    tok, teacher = _tokenizer(args), _model(args, "target")
    pairs = _windows(args, tok, seed=2)
    prompts = [p for ps in figures.probe_prompts(tok, args.data, 10).values() for p in ps]
    greedy, sampled = (alignment.own_texts(teacher, prompts, 96, t, args.seed) for t in (0.0, 1.0))

    def judge(draft) -> dict[str, float]:
        return alignment.measure(draft.eval(), teacher, greedy, sampled)

    start = _model(args, "draft").requires_grad_(True)
    found = {"before": judge(start)}
    tokens = args.tokens or 600_000
    for name, _, measured in alignment.compare(
        start, teacher, lambda i: pairs.batch(i, 8), judge, tokens, args.checkpoints, say
    ):
        found[name] = measured
    (args.checkpoints / "divergences.json").write_text(
        json.dumps({"tokens": tokens, "found": found}, indent=1)
    )


def _diffusion_start(args, tok, teacher) -> DFlashModel:
    """The drafter in the folder --start, or a new one made of the target's last layers."""
    if args.start:
        if not (args.start / "model.safetensors").exists():
            raise UserError(f"no diffusion drafter in {args.start} (--start)")
        return DFlashModel.from_pretrained(args.start).requires_grad_(True)
    block = DFlashModel(diffusion_config(teacher.config, tok.mask_token_id))
    start_from(block, teacher)
    return block


def align(args) -> None:
    """Draft and diffusion drafter learn the target's distributions side by side: its forward, the
    dearest part of a step, is shared."""
    _need_data(args)
    tok, teacher = _tokenizer(args), _model(args, "target")
    pairs = _windows(args, tok, seed=3)
    torch.manual_seed(args.seed)
    block = _diffusion_start(args, tok, teacher)
    both = nn.ModuleDict({"draft": _model(args, "draft").requires_grad_(True), "diffusion": block})
    divergence = DIVERGENCES[args.divergence]

    def batch(index: int) -> tuple[torch.Tensor, int]:
        tokens, counted = pairs.batch(index, rows=6)
        anchors = random_anchors(*tokens.shape, 24, block.config.block_size, seed=index)
        taught = read(teacher, tokens)
        embedding = teacher.get_input_embeddings()
        losses = (
            draft_loss(both["draft"], taught, tokens, counted, divergence),
            diffusion_loss(block, embedding, taught, tokens, counted, anchors),
        )
        if index % 25 == 0:
            say(f"batch {index}: draft {losses[0].item():.3f}, diffusion {losses[1].item():.3f}")
        return sum(losses), tokens.numel()

    budget = Budget(minutes=args.minutes or 20)
    fit(both, batch, budget, args.checkpoints / "align.pt", muon_rate=0.01, adam_rate=2e-3, say=say)
    export_model(both["draft"], args.models / "draft", tok)
    block.save_pretrained(args.models / "diffusion")


def evaluate_all(args) -> None:
    _need_data(args)
    models = {name: _model(args, name) for name in ("target", "draft", "diffusion")}
    found = figures.measure(models, args.models, _tokenizer(args), args.data)
    compared = args.checkpoints / "divergences.json"
    if compared.exists():
        found["divergences"] = json.loads(compared.read_text())
    args.checkpoints.mkdir(parents=True, exist_ok=True)
    (args.checkpoints / "figures.json").write_text(json.dumps(found, indent=1))
    say(json.dumps(found, indent=1))
    if (args.models / "README.md").exists():
        card.update(args.models / "README.md", found)


def write_prompts(args) -> None:
    prompts.write(prompts.training_text(args.checkpoints, _tokenizer(args)))


def large_pair(args) -> None:
    _need_data(args)
    if not torch.cuda.is_available():
        raise UserError("the recipe `large-pair` needs a CUDA GPU; none was found")
    torch.set_float32_matmul_precision("high")
    train_pair(
        load_tokenizer(args.models / "target"),
        args.data,
        args.checkpoints / "large",
        Budget(minutes=args.minutes or 4),
        torch.device("cuda"),
        seed=args.seed,
        say=say,
    )


RECIPES: dict[str, Recipe] = {
    "tokenizer": tokenizer,
    "target": target,
    "text": text,
    "draft": draft,
    "divergences": divergences,
    "align": align,
    "evaluate": evaluate_all,
    "prompts": write_prompts,
    "large-pair": large_pair,
}
