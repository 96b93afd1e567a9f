"""Recipes in which the target writes a text, and draft models and diffusion drafters learn the target's laws on that
text."""

from __future__ import annotations

import copy
import dataclasses
import json

import torch
from torch import nn

from engine.methods.shared.dflash_model import DFlashModel
from engine.training import alignment, selftext
from engine.training import family_figures as figures
from engine.training.checkpoint import export_model
from engine.training.common import (
    UserError,
    folder_tokenizer,
    need_data,
    need_file,
    open_model,
    place,
    say,
    usual_device,
)
from engine.training.diffusion import (
    diffusion_config,
    diffusion_loss,
    features_of,
    random_anchors,
    start_from,
)
from engine.training.distill import MixedWindows, draft_loss, read
from engine.training.divergences import loss_named
from engine.training.loop import Budget, fit, pick_precision
from engine.training.teacher import Teacher, text_windows

ALIGN_ROWS = 16  # windows per batch; with fewer windows the optimizer takes a third of the time
WINDOW = 256  # tokens
BLOCK_SIZES = {"diffusion": 8, "diffusion-16": 16}
BLOCKS = 24  # blocks per window in a step
RATES = {"muon_rate": 0.01, "adam_rate": 2e-3}
CONTINUED = {"muon_rate": 0.005, "adam_rate": 1e-3}
"""The learning rates of a training that goes on from --start; ``RATES`` would first undo what the drafter has
learned."""
WORTH_COMPILING = 5  # minutes; compiling the target takes 0.5, and saves a third of each step


def text(args) -> None:
    """The recipe `text`: the target writes the text on which its drafters learn. It writes in bf16 if the processor is
    faster in bf16. Drafters learn the target's fp32 laws on this text, so it does no harm if rounding has changed some
    tokens."""
    teacher = Teacher.of(args)
    module = copy.deepcopy(teacher.module).to(pick_precision(teacher.module.device.type))
    selftext.write(
        teacher.text_file,
        module,
        teacher.end_token,
        teacher.prompt_streams(args.seed),
        tokens=args.tokens or 400_000,
        seed=args.seed,
        rows=args.rows or selftext.ROWS,
        minutes=args.minutes or 1e9,
        say=say,
    )


def _windows(args, tok, seed: int) -> MixedWindows:
    """The training windows for the drafters: in turn one of the target's own text and one of the corpora."""
    path = need_file(args.checkpoints / "selftext.npz", "text")
    count = args.windows
    return text_windows(path, WINDOW, args.seed + seed, count, (tok, args.data))


def divergences(args) -> None:
    """The recipe `divergences`: trains copies of the draft model, each by a different divergence but on the same
    tokens, and writes their figures to a file. The draft model in use does not change."""
    need_data(args)
    tok, teacher = folder_tokenizer(args), open_model(args, "target")
    pairs = _windows(args, tok, seed=2)
    prompts = [p for ps in figures.probe_prompts(tok, args.data, 10).values() for p in ps]
    greedy, sampled = (alignment.own_texts(teacher, prompts, 96, t, args.seed) for t in (0.0, 1.0))

    def judge(draft) -> dict[str, float]:
        return alignment.measure(draft.eval(), teacher, greedy, sampled)

    start = open_model(args, "draft").requires_grad_(True)
    figures_of = {"before": judge(start)}
    tokens = args.tokens or 600_000
    for name, _, measured in alignment.compare(
        start, teacher, lambda i: pairs.batch(i, 8), judge, tokens, args.checkpoints, say
    ):
        figures_of[name] = measured
    (args.checkpoints / "divergences.json").write_text(
        json.dumps({"tokens": tokens, "found": figures_of}, indent=1)
    )


def _diffusion_start(args, name: str, tok, teacher) -> DFlashModel:
    """The diffusion drafter `name` before its training: the drafter in the folder --start, with the right block size;
    without --start, a new drafter made of the target's last layers."""
    if args.start:
        if not (args.start / "model.safetensors").exists():
            raise UserError(f"no diffusion drafter in {args.start} (--start)")
        started = DFlashModel.read(args.start).requires_grad_(True)
        started.config = dataclasses.replace(started.config, block_size=BLOCK_SIZES[name])
        return started
    config = diffusion_config(teacher.config, tok.mask_token_id, block_size=BLOCK_SIZES[name])
    block = DFlashModel(config)
    start_from(block, teacher)
    return block


def _student(args, name: str, tok, teacher) -> nn.Module:
    if name in BLOCK_SIZES:
        return _diffusion_start(args, name, tok, teacher)
    return open_model(args, name).requires_grad_(True)


def align(args) -> None:
    """The recipe `align`: trains the students named by --students on the target's laws. All students are trained side
    by side, so that they share the target's forward pass, the most expensive part of a step."""
    need_data(args)
    device = usual_device()
    tok, teacher = folder_tokenizer(args), open_model(args, "target").to(device)
    names = args.students.split(",")
    unknown = set(names) - {"draft", "larger-draft", *BLOCK_SIZES}
    if unknown:
        raise UserError(f"no student named {', '.join(sorted(unknown))} (--students)")
    pairs, rows = _windows(args, tok, seed=3), args.rows or ALIGN_ROWS
    torch.manual_seed(args.seed)
    by_name = {name: _student(args, name, tok, teacher) for name in names}
    students = nn.ModuleDict(by_name).to(device)

    def loss_of(name: str, taught, tokens, counted, index: int) -> torch.Tensor:
        student = students[name]
        if name not in BLOCK_SIZES:
            divergence = loss_named(args.divergence, index)
            return draft_loss(student, taught, tokens, counted, divergence)
        size = student.config.block_size
        anchors = random_anchors(*tokens.shape, BLOCKS * 8 // size, size, seed=index).to(device)
        shared = (teacher.get_input_embeddings(), teacher.get_output_embeddings())
        features = features_of(taught.hidden_states, student.config.target_layer_ids)
        inputs = (features, taught.logits, tokens, counted, anchors)
        return diffusion_loss(student, *shared, *inputs, gamma=size / 2)

    def batch(index: int) -> tuple[torch.Tensor, int]:
        tokens, counted = (tensor.to(device) for tensor in pairs.batch(index, rows))
        taught = read(teacher, tokens)
        losses = {name: loss_of(name, taught, tokens, counted, index) for name in names}
        if index % 25 == 0:
            said = ", ".join(f"{name} {loss.item():.3f}" for name, loss in losses.items())
            say(f"batch {index}: {said}")
        return sum(losses.values()), tokens.numel()

    budget = Budget.of(args, minutes=20)
    if (budget.minutes or 0) >= WORTH_COMPILING:
        teacher.forward = torch.compile(teacher.forward, dynamic=False)
    path = args.checkpoints / f"align-{'-'.join(names)}.pt"
    fit(students, batch, budget, path, **(CONTINUED if args.start else RATES), say=say)
    for name in names:
        if name in BLOCK_SIZES:
            students[name].save(place(args, name), {})
        else:
            export_model(students[name], place(args, name), tok)
