"""The recipes `gains` and `evaluate`, which measure the family, and the recipe `prompts`, which writes the prompts
that come with Draftscope."""

from __future__ import annotations

import json
from pathlib import Path

from engine.parts.loading import ModelPaths
from engine.parts.stored_file import weights_in
from engine.training import card, prompts
from engine.training import family_figures as figures
from engine.training.common import folder_tokenizer, need_data, open_model, place, say
from engine.training.students import students
from engine.training.tokenizer import load_tokenizer


def _shipped(args) -> ModelPaths:
    """The folders of target, draft model and diffusion drafter, and of all further trained models that exist."""
    roles = {name: str(place(args, name)) for name in ("draft", "diffusion")}
    learned = (args.models / "parts" / key for key in students())
    roles |= {folder.name: str(folder) for folder in learned if folder.is_dir()}
    return ModelPaths(str(place(args, "target")), roles)


def _replacements(args) -> dict[str, Path]:
    """Role ("draft", "diffusion") -> folder of another trained model for this role, if it exists."""
    parts = {"draft": place(args, "larger-draft"), "diffusion": place(args, "diffusion-16")}
    return {need: path for need, path in parts.items() if weights_in(path)}


def write_gains(args) -> None:
    need_data(args)
    needs = args.needs.split(",") if args.needs else None
    tok = load_tokenizer(place(args, "target"))
    curves = figures.write_gains(_shipped(args), _replacements(args), tok, args.data, needs)
    for drafter, curve in curves.items():
        say(f"{drafter}: " + ", ".join(f"{size} {gain:.2f}" for size, gain in curve.items()))


def evaluate_all(args) -> None:
    need_data(args)
    models = {name: open_model(args, name) for name in ("target", "draft", "diffusion")}
    tok = load_tokenizer(place(args, "target"))
    measured = figures.measure(models, _shipped(args), _replacements(args), tok, args.data)
    for name in ("divergences", "sources", "target.curve"):
        path = args.checkpoints / f"{name}.json"
        if path.exists():
            measured[name] = json.loads(path.read_text())
    args.checkpoints.mkdir(parents=True, exist_ok=True)
    (args.checkpoints / "figures.json").write_text(json.dumps(measured, indent=1))
    say(json.dumps(measured, indent=1))
    if (args.models / "README.md").exists():
        card.update(args.models / "README.md", measured)


def write_prompts(args) -> None:
    used = prompts.training_text(args.checkpoints, folder_tokenizer(args))
    prompts.write(used, args.workloads.split(",") if args.workloads else None)
