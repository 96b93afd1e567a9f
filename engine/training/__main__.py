"""`python -m engine.training RECIPE`: see `recipes` for what there is."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # everything is read from folders

from . import recipes
from .distill import DIVERGENCES


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m engine.training",
        description=recipes.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    root = Path(__file__).resolve().parents[2]
    made.add_argument("recipe", help=" | ".join(recipes.RECIPES))
    made.add_argument(
        "--data", type=Path, default=root.parent / "shared" / "data", help="folder of the corpora"
    )
    made.add_argument(
        "--checkpoints",
        type=Path,
        default=Path.home() / ".cache" / "draftscope" / "training",
        help="folder for everything that is not a result",
    )
    made.add_argument(
        "--models", type=Path, default=root / "presets" / "models", help="folder of the results"
    )
    made.add_argument(
        "--early", type=Path, help="recipe target: also write the half-trained target there"
    )
    made.add_argument(
        "--start",
        type=Path,
        help="recipes target, align: go on from the target (align: the diffusion drafter) in this folder",
    )
    made.add_argument(
        "--minutes", type=float, help="wall-clock budget; each recipe has its own default"
    )
    made.add_argument(
        "--tokens",
        type=int,
        help="recipe text: how many tokens to write; recipe divergences: how many each is trained on",
    )
    made.add_argument(
        "--divergence",
        default="forward_kl",
        choices=DIVERGENCES,
        help="recipe align: what the draft is aligned with (default %(default)s)",
    )
    made.add_argument("--seed", type=int, default=0)
    return made


def main(arguments: list[str] | None = None) -> int:
    args = parser().parse_args(arguments)
    try:
        if args.recipe not in recipes.RECIPES:
            raise recipes.UserError(
                f"no recipe named {args.recipe!r}; there are: {', '.join(recipes.RECIPES)}"
            )
        recipes.RECIPES[args.recipe](args)
    except recipes.UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
