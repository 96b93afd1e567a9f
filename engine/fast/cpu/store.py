"""Graphs compiled by OpenVINO once per model, kept in the user's cache folder and found by their content.

The numbers are fp32: none is rounded to a smaller type.
"""

from __future__ import annotations

import hashlib
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar
from weakref import WeakKeyDictionary

import torch
import transformers
from torch import Tensor, nn
from transformers.utils import logging as transformers_logging

from engine.cache_folder import cache_folder, write_whole
from engine.fast.cpu.bf16_products import bf16_pays, split_products
from engine.fast.cpu.core_count import settings, threads
from engine.fast.cpu.joining import join_products
from engine.fast.cpu.runtime import core
from engine.fast.cpu.sharing import share_matrices
from engine.fast.cpu.stored_products import (
    has_stored,
    looks_stored,
    reads_stored,
    store_products,
)

T = TypeVar("T")
log = logging.getLogger(__name__)

METHOD = 6  # version of the compilation; graphs of other versions are not used
STORED = ".stored"  # suffix of the files of graphs that read matrices as they are stored
MOST_BYTES = 4 * 2**30  # of the folder; the least recently used files go first
MOST_KEPT = 2**24
"""Bytes of weights of a graph that is kept in the folder. A graph that is read from a file holds the file's numbers
beside its own; a graph that was converted in this process shares the module's weights. Weights that are read as they are
stored take a fifth of the memory, and their graph is kept."""
EXTRA = 16_000
"""Bytes that a compiled graph takes for each of its operations, beside its weights; measured."""


class Compiled:
    """A graph as OpenVINO runs it.

    model: on the threads of this process. again(count): the same on another number of threads. nbytes: of memory. stored:
    whether it reads matrices of 4 or 8 bits as they are stored.
    """

    def __init__(
        self, model, again: Callable[[int], object], nbytes: int = 0, stored: bool = False
    ) -> None:
        self.model, self.nbytes, self.stored = model, nbytes, stored
        self._again = again

    def on_threads(self, count: int):
        """The graph on this many threads; it takes as much memory again. Exceptions of OpenVINO pass through;
        RuntimeError after ``only``."""
        if self._again is None:
            raise RuntimeError("it was made for one number of threads")
        return self._again(count)

    def only(self) -> None:
        """Let go of what ``on_threads`` needs."""
        self._again = None


def compiled(
    graph: nn.Module,
    example: Sequence[Tensor],
    described: str,
    sizes: Mapping[int, Sequence[int]] | None = None,
    kept: bool = True,
) -> Compiled:
    """The compiled graph. Every size may vary that is not fixed by the weights or by ``sizes``.

    example: arguments of the graph. described: text that identifies the graph, beside its weights. sizes: by
    number of the argument; -1 is a size that may vary. kept: in the cache folder, if the graph is small. Raises whatever
    OpenVINO raises if it cannot convert the graph, and ImportError if OpenVINO is not installed.
    """
    runtime = core()
    path = None
    if kept and _worth_keeping(graph):
        path = _path(graph, example, f"{described} {sizes}" if sizes else described)
    for file in () if path is None else (path, path.with_suffix(STORED)):
        found = _kept(runtime, file)
        if found is not None:
            again = partial(_read, file)
            return Compiled(found, again, 2 * file.stat().st_size, file.suffix == STORED)
    model = _model_of(graph, example)
    stored = has_stored(model)
    if sizes:
        model = model.clone()
        model.reshape({number: list(size) for number, size in sizes.items()})
    made = runtime.compile_model(model, "CPU", settings(threads()))
    if path is not None:
        _keep(made, path.with_suffix(STORED) if stored else path)
    return Compiled(
        made,
        lambda count: runtime.compile_model(model, "CPU", settings(count)),
        _needed(model),
        stored,
    )


def _worth_keeping(graph: nn.Module) -> bool:
    """Whether the graph is small, or made small by reading its weights as they are stored; finding their bits again takes
    seconds."""
    weights = [weight.detach() for weight in graph.parameters()]
    return sum(weight.nbytes for weight in weights) <= MOST_KEPT or looks_stored(weights)


def last_of(graph: nn.Module, made: Compiled) -> Compiled:
    """The compiled graph without the data to compile it for other sizes and threads, some 20 KB an operation."""
    _models.pop(graph, None)
    made.only()
    return made


def _needed(model) -> int:
    """Bytes of memory that an OpenVINO model takes once it is compiled."""
    nodes = model.get_ordered_ops()
    constants = (node for node in nodes if node.get_type_name() == "Constant")
    return sum(node.get_byte_size() for node in constants) + EXTRA * len(nodes)


def _read(path: Path, count: int):
    return core().import_model(path.read_bytes(), "CPU", settings(count))


_models: WeakKeyDictionary[nn.Module, object] = WeakKeyDictionary()


def _model_of(graph: nn.Module, example: Sequence[Tensor]):
    """The graph as OpenVINO reads it, converted once for all sizes."""
    if graph not in _models:
        _models[graph] = _converted(graph, example)
    return _models[graph]


@torch.no_grad()
def _converted(graph: nn.Module, example: Sequence[Tensor]):
    """Does the same as openvino.convert_model, without the usage report that it sends to its makers."""
    from openvino.frontend import FrontEndManager
    from openvino.frontend.pytorch.ts_decoder import TorchScriptPythonDecoder

    with _silence():
        traced = TorchScriptPythonDecoder(
            graph, example_input=tuple(example), trace_kwargs={"check_trace": False}
        )
    front = FrontEndManager().load_by_framework("pytorch")
    model = front.convert(front.load(traced))
    if reads_stored():
        store_products(model)
    join_products(model, graph.parameters())
    if bf16_pays():
        split_products(model)
    share_matrices(model)
    return model


@contextmanager
def _silence() -> Iterator[None]:
    """Tracing touches every attribute of a module, including deprecated ones."""
    level = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        transformers_logging.set_verbosity(level)


def _path(graph: nn.Module, example: Sequence[Tensor], described: str) -> Path | None:
    try:
        folder = cache_folder() / "compiled"
    except RuntimeError:  # no home
        return None
    return folder / f"{_digest(graph, example, described)}.blob"


def _digest(graph: nn.Module, example: Sequence[Tensor], described: str) -> str:
    """A digest of everything that a compiled graph depends on."""
    import openvino

    versions = openvino.__version__, transformers.__version__, torch.__version__
    shapes = [(tuple(each.shape), str(each.dtype)) for each in example]
    made = METHOD, bf16_pays(), reads_stored(), versions, shapes, described
    digest = hashlib.blake2b(repr(made).encode(), digest_size=16)
    for name, tensor in graph.state_dict(keep_vars=True).items():
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(tensor.detach().contiguous().view(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def _kept(runtime, path: Path):
    """The kept model; None if there is none, or none that this OpenVINO can read."""
    try:
        content = path.read_bytes()
        path.touch()
    except OSError:
        return None
    try:
        return runtime.import_model(content, "CPU", settings(threads()))
    except Exception as error:  # noqa: BLE001 - OpenVINO has no common kind
        log.info("A compiled model in the cache folder is made anew: %s", in_one_line(error))
        return None


def _keep(model, path: Path) -> bool:
    """Returns whether the model was kept."""
    try:
        content = _content(model)
        _make_room(path.parent, MOST_BYTES - len(content))
        if len(content) <= MOST_BYTES:
            write_whole(path, content)
            return True
    except Exception as error:  # noqa: BLE001 - a full disk, a read-only folder, no export
        log.info("A compiled model was not kept: %s", in_one_line(error))
    return False


def _content(model) -> bytes:
    exported = model.export_model()
    return exported if isinstance(exported, bytes) else exported.getvalue()


def _make_room(folder: Path, most: int) -> None:
    """Delete the least recently used files until the others have at most ``most`` bytes. Unfinished files
    of killed processes count as well."""
    if not folder.is_dir():
        return
    files = sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime)
    total = sum(file.stat().st_size for file in files)
    for file in files:
        if total <= most:
            return
        total -= file.stat().st_size
        file.unlink(missing_ok=True)


def in_one_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def tried(make: Callable[[], T], what: str, level: int = logging.WARNING) -> T | None:
    """The result of ``make``; None, with a line in the log, if ``make`` raises: the pass then runs without a graph.
    what: the part of the model, for the log."""
    return _or_none(make, f"There is no graph for {what}", level)


def through_module(make: Callable[[], T], what: str) -> T | None:
    """The result of ``make``; None, with a line in the log, if ``make`` raises: the model or part then runs as a plain module."""
    return _or_none(make, f"{what} runs through its own module", logging.WARNING)


def _or_none(make: Callable[[], T], words: str, level: int) -> T | None:
    try:
        return make()
    except Exception as error:  # noqa: BLE001 - of OpenVINO, of a traced module: no common kind
        log.log(level, "%s: %s", words, in_one_line(error))
        return None
