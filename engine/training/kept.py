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
from transformers import LlamaConfig

from engine.training.checkpoint import save_checkpoint
from engine.training.functional_llama import Shape
from engine.training.shared_state import KEPT

MOMENTS = ("moment", "second")


def _shape(config: LlamaConfig, depth: int) -> Shape:
    return Shape.of(LlamaConfig.from_dict({**config.to_dict(), "num_hidden_layers": depth}))


def _by_adam(name: str, tensor: torch.Tensor) -> bool:
    return tensor.ndim == 1 or "embed" in name


def keep(saved: dict, config: LlamaConfig, path: Path) -> None:
    """Write a checkpoint of the trainer (`SharedState.state_dict`) in compact form."""
    shape = _shape(config, saved["depth"])
    views = {kind: shape.views(saved[kind][: shape.size()]) for kind in ("weights", *MOMENTS)}
    tensors = {f"weights.{n}": t.to(torch.float16) for n, t in views["weights"].items()}
    for kind in MOMENTS:
        of_adam = {n: t for n, t in views[kind].items() if _by_adam(n, t)}
        tensors |= {f"{kind}.{n}": t.to(torch.bfloat16) for n, t in of_adam.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {"step": str(saved["step"]), "depth": str(saved["depth"])}
    save_file({n: t.contiguous() for n, t in tensors.items()}, path, metadata)
    path.chmod(0o644)


def take_up(path: Path, config: LlamaConfig) -> dict | None:
    """The state that `keep` wrote, as the trainer loads it; None where nothing was kept."""
    if not path.exists():
        return None
    with safe_open(path, "pt") as file:
        step, depth = (int(file.metadata()[name]) for name in ("step", "depth"))
        tensors = {name: file.get_tensor(name).float() for name in file.keys()}  # noqa: SIM118
    shape, deepest = _shape(config, depth), Shape.of(config)
    saved = {"step": step, "depth": depth, **{kind: torch.zeros(deepest.size()) for kind in KEPT}}
    for kind in ("weights", *MOMENTS):
        for name, view in shape.views(saved[kind][: shape.size()]).items():
            if f"{kind}.{name}" in tensors:
                view.copy_(tensors[f"{kind}.{name}"])
    saved["mean"].copy_(saved["weights"])
    return saved


def restore(kept: Path, checkpoint: Path, config: LlamaConfig) -> int | None:
    """Where there is no checkpoint, make one from the kept state, with its curve. Returns its step, or None where
    nothing was done."""
    if checkpoint.exists() or not (saved := take_up(kept, config)):
        return None
    curve = kept.with_suffix(".curve.json")
    if curve.exists():
        checkpoint.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(curve, checkpoint.with_suffix(".curve.json"))
    save_checkpoint(checkpoint, saved)
    return saved["step"]
