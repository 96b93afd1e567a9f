"""Opens a target and the parts that a drafter needs, each once per process."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from engine.errors import UserError
from engine.model.language_model import LanguageModel
from engine.parts.digest import check_belongs
from engine.parts.files import read_config
from engine.parts.kinds import kind_of
from engine.parts.models import open_model
from engine.serving import served_text  # noqa: F401, it registers how texts of a served target are written
from engine.serving.engine_address import is_served
from engine.serving.served_target import ServedTarget

_LOADING = threading.Lock()  # transformers opens one model at a time: meta tensors are global state
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True)
class ModelPaths:
    """The places of a run's models: folders or Hub names. parts: by role ("draft", "diffusion" ...).
    family: the name of the models, for traces; "" if they have none."""

    target: str
    parts: Mapping[str, str] = field(default_factory=dict)
    family: str = ""

    def with_parts(self, parts: Mapping[str, str | None]) -> "ModelPaths":
        """A copy with these parts in place of the parts of the same role. A role whose path is None keeps its part."""
        new_parts = {role: path for role, path in parts.items() if path is not None}
        return replace(self, parts={**self.parts, **new_parts})


@dataclass(frozen=True)
class Models:
    """The models of a run.

    parts: by role, only the parts that the drafter needs. folders: the places of the parts by role, and of the target
    ("target").
    costs: the number of nodes of a tree -> milliseconds of a target pass over it. step_costs: the number of drafted
    tokens -> milliseconds of a step of the drafter (``Drafter.at_fixed_size``). Both are empty unless the drafter
    requests them and they could be measured.
    """

    target: LanguageModel
    parts: Mapping[str, object] = field(default_factory=dict)
    folders: Mapping[str, str] = field(default_factory=dict)
    costs: Mapping[int, float] = field(default_factory=dict)
    step_costs: Mapping[int, float] = field(default_factory=dict)

    def part(self, role: str):
        """The part with this role. Raises KeyError if the drafter did not declare the role."""
        return self.parts[role]


def load_models(
    paths: ModelPaths,
    needs: Mapping[str, str],
    dtype: str | None = None,
    device: str | None = None,
) -> Models:
    """Open the target and the drafter's parts.

    needs: role -> kind. dtype: float32 | bfloat16 | float16; None is float32 on a CPU and the checkpoint's dtype on a
    GPU. Raises UserError for a missing model, an unknown dtype or device, and for a part that does not belong to the
    target.
    """
    where, kind = place_of(dtype, device)
    check_parts(paths, needs)
    # an engine is contacted outside the lock, so that waiting for it keeps no run from opening a model
    target = _served(paths) if is_served(paths.target) else None
    with _LOADING:
        target = target or open_model(paths.target, kind, where)
        parts, folders = {}, {"target": paths.target}
        for role, part_kind in needs.items():
            opener, path = kind_of(part_kind), paths.parts[role]
            check_belongs(path, paths.target, opener.noun)
            parts[role] = opener.load(path, target, kind, where)
            folders[role] = path
        return Models(target, parts, folders)


def _served(paths: ModelPaths) -> ServedTarget:
    """Open the target behind a serving engine. Its tokenizer comes from the part "tokenizer" or else from the part
    "draft". Raises UserError."""
    folder = paths.parts.get("tokenizer") or paths.parts.get("draft")
    if folder is None:
        raise UserError(
            "A target behind an engine needs its tokenizer here: the draft's (--draft DIR), or --part tokenizer=DIR."
        )
    return ServedTarget(paths.target, folder)


def place_of(dtype: str | None, device: str | None) -> tuple[str, torch.dtype | None]:
    """The device, and the dtype or None for the checkpoint's own; see ``load_models``. Raises UserError if either is
    unknown."""
    return _device(device), DTYPES.get(_dtype(dtype, device))


def check_parts(paths: ModelPaths, needs: Mapping[str, str]) -> None:
    """Raises UserError if a needed part has no path. needs: role -> kind."""
    for role, kind in needs.items():
        if paths.parts.get(role) is None:
            raise UserError(
                f"This drafter needs {kind_of(kind).named} for this target; none was given "
                f"({_flag(role)})."
            )


def half_precision(path: str) -> bool:
    """Whether a model in this folder computes in half precision on this machine if it is opened without a dtype."""
    if _dtype(None, None) is not None:
        return False
    config = read_config(Path(path))
    return config.get("dtype", config.get("torch_dtype")) in ("bfloat16", "float16")


def _flag(role: str) -> str:
    return f"--{role} DIR" if role in ("draft", "diffusion") else f"--part {role}=DIR"


def _dtype(name: str | None, device: str | None) -> str | None:
    if name is None:
        return "float32" if _device(device) == "cpu" else None
    if name not in DTYPES:
        raise UserError(f"There is no dtype {name!r}; known are: {', '.join(DTYPES)}.")
    return name


def _device(name: str | None) -> str:
    if name is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=torch.device(name))
    except (RuntimeError, AssertionError):
        raise UserError(f"There is no device {name!r} on this machine.") from None
    device = torch.device(name)
    if device.type == "meta":
        raise UserError("The device meta holds no numbers; choose cpu or cuda.")
    if device.type == "cuda" and device.index not in (None, torch.cuda.current_device()):
        # kernels and captured graphs go to the current GPU, and nothing would report the mismatch
        raise UserError(f"Choose a GPU by CUDA_VISIBLE_DEVICES={device.index} and the device cuda.")
    return name
