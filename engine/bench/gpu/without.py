"""The engine without one of its pieces for GPUs, to measure what the piece brings.

Every variant reads the same module, on buffers and graphs of its own. What replaces a piece is the
rest of the engine, or torch.
"""

import contextlib
import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import torch.nn.functional as F
from torch import Tensor

from engine.bench.gpu.torch_compiled import CompiledSets
from engine.core.drafter import Drafter
from engine.fast.gpu import kernel_calls
from engine.fast.gpu.static_model import JoinedModel, StaticModel
from engine.fast.gpu.text_buffers import TextBuffers
from engine.methods import drafters
from engine.methods.shared.block_context import ModuleContext
from engine.methods.shared.block_drafter import DiffusionDrafter
from engine.methods.shared.dflash_model import DFlashModel
from engine.model.language_model import LanguageModel
from engine.parts.loading import Models

COMPILED = "torch.compile"  # in place of several pieces
KERNELS = "engine.fast.gpu.kernel_calls.attend"


@dataclass(frozen=True)
class Piece:
    """replaced: what does the work without it. files: what only this piece needs, as patterns below ``engine``.
    model, part: a model, or another part, without the piece. running: a context in which texts are written without it.
    serves: whether a method uses the piece."""

    name: str
    replaced: str
    files: tuple[str, ...]
    model: Callable[[StaticModel], LanguageModel] = lambda model: _again(model)
    part: Callable[[object], object] = lambda part: part
    running: Callable[[], AbstractContextManager] = nullcontext
    serves: Callable[[type[Drafter]], bool] = lambda cls: True

    @property
    def absence(self) -> str:
        """The variant's name."""
        return self.name if self.name == COMPILED else f"without {self.name}"

    @property
    def lines(self) -> int:
        """Lines of code in its files."""
        folder = Path(__file__).parents[2]
        found = {file for pattern in self.files for file in folder.glob(pattern)}
        return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in found)

    def without(self, models: Models) -> Models:
        """The same models without the piece."""
        parts = {
            role: self.model(part) if isinstance(part, StaticModel) else self.part(part)
            for role, part in models.parts.items()
        }
        return Models(self.model(models.target), parts, models.folders)


def has_twin(cls: type[Drafter]) -> bool:
    """Whether a device can draft in its place."""
    return cls.device_twin is not Drafter.device_twin and not cls.yours


def _again(model: StaticModel, captures: bool = True, **changes: object) -> StaticModel:
    """The same weights on other buffers."""
    made = copy.copy(model)
    vars(made).update(changes)
    made.buffer_sets = made.new_buffer_sets(captures)
    return made


def _on_plain_contexts(part: object) -> object:
    if not isinstance(part, DFlashModel):
        return part
    made = copy.copy(part)
    made.make_context = ModuleContext
    return made


def _without_buffers(model: StaticModel) -> LanguageModel:
    made = JoinedModel(model.model, model.tokenizer, model.name, lean=False)
    made.end_tokens, made.max_context = model.end_tokens, model.max_context
    return made


def _compiled(model: StaticModel) -> StaticModel:
    made = _again(model, rows=model.model)
    made.buffer_sets = CompiledSets(
        TextBuffers, made.rows, made.layers, made.name, made.device, captures=False
    )
    return made


def dense_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask,
    scaling=None,
    window=None,
    softcap=None,
    sinks=None,
) -> Tensor | None:
    """As ``kernel_calls.attend``, by SDPA with a dense mask and a copy of the KV heads for each query head, as its fused
    kernels require. None where scores are capped or there are sinks."""
    if softcap is not None or sinks is not None:
        return None
    groups = query.shape[1] // key.shape[1]
    key, value = (tensor.repeat_interleave(groups, 1) for tensor in (key, value))
    seen = mask.within(window)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=seen, scale=scaling)


def _always(tensor: Tensor) -> bool:
    """One function for all contexts, because torch would compile anew for another."""
    return True


@contextlib.contextmanager
def _judged_on_the_host() -> Iterator[None]:
    with patch("engine.fast.gpu.device_text.knows", lambda rule: False):
        yield


@contextlib.contextmanager
def _drafted_on_the_host() -> Iterator[None]:
    with contextlib.ExitStack() as patches:
        for cls in drafters().values():
            patches.enter_context(patch.object(cls, "device_twin", Drafter.device_twin))
        yield


@contextlib.contextmanager
def _dense() -> Iterator[None]:
    with patch.object(kernel_calls, "takes", _always), patch(KERNELS, dense_attention):
        yield


@contextlib.contextmanager
def _all_by_torch() -> Iterator[None]:
    with _judged_on_the_host(), _dense():
        yield


TWINS = (
    "methods/*/device.py",
    "fast/gpu/device_tree.py",
    "fast/gpu/choice.py",
)
VERDICTS = (
    "fast/gpu/verdict.py", "fast/gpu/judge.py", "fast/gpu/question.py", "fast/gpu/device_text.py", "fast/kernels/verify_tree.py",
    "fast/kernels/flat_tree.py", "fast/kernels/judging.py",
)  # fmt: skip
GRAPHS = ("fast/gpu/capture.py", "fast/gpu/host_free.py")
LEAN = ("fast/gpu/lean_rows.py",)
ATTENTION = ("fast/kernels/tree_attention.py", "fast/kernels/attention_plan.py")
BLOCKS = ("methods/shared/static_block_context.py",)

PIECES = (
    Piece(
        "verdicts",
        "trees are judged, and drafted, on the host",
        (*VERDICTS, *TWINS),
        running=_judged_on_the_host,
    ),
    Piece(
        "twins",
        "trees are drafted on the host",
        TWINS,
        running=_drafted_on_the_host,
        serves=has_twin,
    ),
    Piece("lean", "the module's own forward", LEAN, lambda model: _again(model, rows=model.model)),
    Piece("attention", "SDPA with a dense mask", ATTENTION, running=_dense),
    Piece(
        "graphs",
        "passes are called, not replayed",
        GRAPHS,
        lambda model: _again(model, captures=False),
    ),
    Piece(
        "blocks",
        "the block drafter's own passes",
        BLOCKS,
        part=_on_plain_contexts,
        serves=lambda cls: issubclass(cls, DiffusionDrafter),
    ),
    Piece(
        "buffers",
        "passes through the module on a growing cache; no graphs, verdicts or twins",
        ("fast/gpu/*.py",),
        _without_buffers,
    ),
    Piece(
        COMPILED,
        "passes on static buffers, compiled by torch.compile(mode='reduce-overhead'); no graphs, "
        "verdicts, twins or kernels of our own",
        (*GRAPHS, *LEAN, *VERDICTS, *TWINS, *ATTENTION),
        _compiled,
        _all_by_torch,
    ),
)
