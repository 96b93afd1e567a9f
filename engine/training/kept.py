"""A training's state, small enough for the repository: a machine without checkpoints continues from it.

It holds the weights in fp16 and, for the parameters that Adam updates, both moments in bf16. The momentum of the
matrices is left out: Muon uses only its direction, and a few dozen steps rebuild it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from engine.training.checkpoint import save_checkpoint
from engine.training.plan import TrainingPlan
from engine.training.pretraining import depth_of

MOMENTS = {"moment": "m", "second": "v"}
"""Name in the file -> name in the optimizer's state."""
HEAD, EMBEDDING = "lm_head.weight", "model.embed_tokens.weight"
"""They are one tensor."""


def keep(saved: dict, path: Path) -> None:
    """Write a checkpoint of the trainer (`loop.fit`) in compact form."""
    tensors = {f"weights.{n}": t.half() for n, t in saved["model"].items() if n != HEAD}
    for name, state in saved["optimizer"]["state"].items():
        if "v" in state:
            for kind, own in MOMENTS.items():
                tensors[f"{kind}.{name}"] = state[own].to(torch.bfloat16)
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {"step": str(saved["index"]), "depth": str(depth_of(saved))}
    save_file({n: t.contiguous() for n, t in tensors.items()}, path, metadata)
    path.chmod(0o644)


def take_up(path: Path, plan: TrainingPlan) -> dict | None:
    """The state that `keep` wrote, as the trainer loads it; None where nothing was kept."""
    if not path.exists():
        return None
    with safe_open(path, "pt") as file:
        step = int(file.metadata()["step"])
        tensors = {name: file.get_tensor(name).float() for name in file.keys()}  # noqa: SIM118
    of_kind = {
        kind: {
            n.removeprefix(f"{kind}."): t for n, t in tensors.items() if n.startswith(f"{kind}.")
        }
        for kind in ("weights", *MOMENTS)
    }
    weights = of_kind["weights"]
    state = {
        name: {"m": torch.zeros_like(weight), "mean": weight}
        | {own: of_kind[kind][name] for kind, own in MOMENTS.items() if name in of_kind[kind]}
        for name, weight in weights.items()
    }
    return {
        "model": {**weights, HEAD: weights[EMBEDDING]},
        "optimizer": {"steps": step, "state": state},
        "budget": {"spent_seconds": 0.0, "spent_tokens": step * plan.step_tokens},
        "index": step,
    }


def restore(kept: Path, checkpoint: Path, plan: TrainingPlan) -> int | None:
    """Where there is no checkpoint, make one from the kept state, with its curve. Returns its step, or None where
    nothing was done."""
    if checkpoint.exists() or not (saved := take_up(kept, plan)):
        return None
    curve = kept.with_suffix(".curve.json")
    if curve.exists():
        checkpoint.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(curve, checkpoint.with_suffix(".curve.json"))
    save_checkpoint(checkpoint, saved)
    return saved["index"]
