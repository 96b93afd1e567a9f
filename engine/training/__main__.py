"""The command `python -m engine.training RECIPE`; `recipes` lists the recipes."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

BEGAN = time.monotonic()  # taken before the slow imports

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # everything is read from folders

from engine.training import recipes
from engine.training.common import UserError
from engine.training.divergences import LOSSES
from engine.training.drafting_recipes import ALIGN_ROWS
from engine.training.part_recipe import ROWS
from engine.training.selftext import ROWS as TEXTS
from engine.training.teacher import WINDOWS


def parser() -> argparse.ArgumentParser:
    command_line = argparse.ArgumentParser(
        prog="python -m engine.training",
        description=recipes.described(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    root = Path(__file__).resolve().parents[2]
    command_line.add_argument("recipe", help=" | ".join(recipes.RECIPES))
    command_line.add_argument(
        "--data", type=Path, default=root.parent / "shared" / "data", help="folder of the corpora"
    )
    command_line.add_argument(
        "--checkpoints",
        type=Path,
        default=Path.home() / ".cache" / "draftscope" / "training",
        help="folder for everything that is not a result",
    )
    command_line.add_argument(
        "--models", type=Path, default=root / "presets" / "models", help="folder of the results"
    )
    command_line.add_argument(
        "--start",
        type=Path,
        help="recipe align: go on from the diffusion drafter in this folder; recipes eagle, gto: from the feature drafter "
        "in it; recipe tokenizer: the target's folder",
    )
    command_line.add_argument(
        "--processes",
        type=int,
        default=2,
        help="recipes target, draft: processor cores to compute on (default %(default)s)",
    )
    command_line.add_argument(
        "--until", type=int, help="recipes target, draft: stop after this step"
    )
    command_line.add_argument("--larger", action="store_true", help="recipe draft: the larger one")
    command_line.add_argument(
        "--students",
        default="draft,diffusion",
        help="recipe align: which of draft, larger-draft, diffusion, diffusion-16 (default %(default)s)",
    )
    command_line.add_argument(
        "--count", type=int, help="recipe conversations: how many (default 48,000)"
    )
    command_line.add_argument(
        "--needs",
        help="recipe gains: only drafters that need one of these models, with commas between (target: no other model)",
    )
    command_line.add_argument("--workloads", help="recipe prompts: only these, with commas between")
    command_line.add_argument(
        "--minutes",
        type=float,
        help="recipes text, chat-text, align, hybrid, experts, captions, parts: wall-clock budget",
    )
    command_line.add_argument(
        "--tokens",
        type=int,
        help="recipes text, chat-text, datastore: how many tokens to write; recipes divergences, align, parts: how many to learn from; recipe scylla: of the largest draft",
    )
    command_line.add_argument(
        "--divergence",
        default="forward_kl",
        choices=LOSSES,
        help="recipe align: what the draft is aligned with (default %(default)s)",
    )
    command_line.add_argument("--seed", type=int, default=0)
    parts = command_line.add_argument_group("the recipes of parts, and text")
    parts.add_argument(
        "--target",
        type=Path,
        help="folder of any causal language model in Hugging Face format (default: the family's own target)",
    )
    parts.add_argument("--text", type=Path, help="file of a named target's text (.npz)")
    parts.add_argument(
        "--held-out", type=Path, help="file of greedy texts of a named target to measure a part on"
    )
    parts.add_argument("--output", type=Path, help="folder of the finished part")
    parts.add_argument("--eight-bits", action="store_true", help="write its matrices in 8 bits")
    parts.add_argument(
        "--seconds",
        type=float,
        help="wall-clock time of a part's recipe from the start of the command to the finished files",
    )
    parts.add_argument(
        "--prompts",
        type=Path,
        default=root / "presets" / "prompts",
        help="prompts for a named target: a file with one prompt per line, or JSON lines with a field prompt",
    )
    parts.add_argument(
        "--draft",
        type=Path,
        help="folder of a named target's draft, for parts that read the draft's states",
    )
    parts.add_argument(
        "--diffusion",
        type=Path,
        help="folder of a diffusion drafter, for parts that read its confidences (default: the family's own)",
    )
    parts.add_argument(
        "--name",
        help="name of the part's folder (default: the recipe's name; recipe halve needs it)",
    )
    parts.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of the recipe; may be repeated",
    )
    parts.add_argument(
        "--rows",
        type=int,
        help=f"windows per batch (default {ROWS}; recipe align: {ALIGN_ROWS}); recipes text, chat-text: texts written at once "
        f"(default {TEXTS}). A GPU wants more",
    )
    parts.add_argument(
        "--length", type=int, default=256, help="tokens per window (default %(default)s)"
    )
    parts.add_argument(
        "--windows",
        type=int,
        default=WINDOWS,
        help="windows made before the training, which reads them in a cycle (0: as many as a named target's text fills); "
        "also recipe align (default %(default)s)",
    )
    return command_line


def main(arguments: list[str] | None = None) -> int:
    args = parser().parse_args(arguments)
    args.began = BEGAN if arguments is None else time.monotonic()
    for sentence in recipes.LEFT_OUT.values():
        print(f"left out: {sentence}", file=sys.stderr)
    try:
        if args.recipe not in recipes.RECIPES:
            raise UserError(
                f"no recipe named {args.recipe!r}; there are: {', '.join(recipes.RECIPES)}"
            )
        recipes.RECIPES[args.recipe](args)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
