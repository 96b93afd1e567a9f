"""Compiles graphs with OpenVINO, and stores small ones in the user's cache folder, in files named by their content.

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
MOST_BYTES = 4 * 2**30  # of the folder; the least recently used files are deleted first
MOST_KEPT = 2**24
"""The most bytes of weights of a graph that is stored in the folder. A graph that is read from a file holds the file's
numbers in memory beside its own, while a graph that was converted in this process shares the module's weights. A graph
that reads its weights as they are stored (``stored_products``) is stored whatever its size: such weights take a fifth
of the memory."""
EXTRA = 16_000
"""Bytes of memory that a compiled graph takes for each of its operations, beside its weights; measured."""


class Compiled:
    """A graph that OpenVINO has compiled.

    model: OpenVINO's compiled model, which runs on the threads of this process. again(count): compiles the graph for
    another number of threads. nbytes: bytes of memory that the graph takes. stored: whether the graph reads matrices of
    4 or 8 bits as they are stored.
    """

    def __init__(
        self, model, again: Callable[[int], object], nbytes: int = 0, stored: bool = False
    ) -> None:
        self.model, self.nbytes, self.stored = model, nbytes, stored
        self._again = again

    def on_threads(self, count: int):
        """Compile the graph again, for this many threads; the second graph takes as much memory as the first. Raises
        whatever OpenVINO raises, and RuntimeError after a call of ``only``."""
        if self._again is None:
            raise RuntimeError("it was made for one number of threads")
        return self._again(count)

    def only(self) -> None:
        """Free the data that ``on_threads`` needs."""
        self._again = None


def compiled(
    graph: nn.Module,
    example: Sequence[Tensor],
    described: str,
    sizes: Mapping[int, Sequence[int]] | None = None,
    kept: bool = True,
) -> Compiled:
    """Return the compiled graph of a module. A dimension of an argument may vary unless the weights or ``sizes`` fix
    it.

    example: example arguments of the graph. described: text that identifies the graph, beside its weights. sizes: the
    shape of each argument, by the argument's index; -1 is a dimension that may vary. kept: store the graph in the cache
    folder if it is small. Raises whatever OpenVINO raises if it cannot convert the graph, and ImportError if OpenVINO
    is not installed.
    """
    runtime = core()
    path = None
    if kept and _worth_keeping(graph):
        path = _path(graph, example, f"{described} {sizes}" if sizes else described)
    for file in () if path is None else (path, path.with_suffix(STORED)):
        model_from_file = _kept(runtime, file)
        if model_from_file is not None:
            again = partial(_read, file)
            return Compiled(model_from_file, again, 2 * file.stat().st_size, file.suffix == STORED)
    model = _model_of(graph, example)
    stored = has_stored(model)
    if sizes:
        model = model.clone()
        model.reshape({number: list(size) for number, size in sizes.items()})
    compiled_model = runtime.compile_model(model, "CPU", settings(threads()))
    if path is not None:
        _keep(compiled_model, path.with_suffix(STORED) if stored else path)
    return Compiled(
        compiled_model,
        lambda count: runtime.compile_model(model, "CPU", settings(count)),
        _needed(model),
        stored,
    )


def _worth_keeping(graph: nn.Module) -> bool:
    """Whether this graph is stored in the cache folder. Small graphs are, and so are graphs that read matrices of 4 or
    8 bits as they are stored, because finding these bits again in the unpacked weights would take seconds."""
    weights = [weight.detach() for weight in graph.parameters()]
    return sum(weight.nbytes for weight in weights) <= MOST_KEPT or looks_stored(weights)


def last_of(graph: nn.Module, made: Compiled) -> Compiled:
    """Return the compiled graph ``made``, and free what is only needed to compile it again for other sizes or numbers
    of threads: some 20 KB per operation."""
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
    """The OpenVINO model of the graph for all sizes, converted once and then remembered."""
    if graph not in _models:
        _models[graph] = _converted(graph, example)
    return _models[graph]


@torch.no_grad()
def _converted(graph: nn.Module, example: Sequence[Tensor]):
    """Convert the graph as ``openvino.convert_model`` does, but without a usage report to OpenVINO's makers; then
    rewrite the products of the model. Returns the OpenVINO model."""
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
    """Within this context, no warnings are printed: tracing touches every attribute of a module, even deprecated
    ones."""
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
    shapes = [(tuple(tensor_shape.shape), str(tensor_shape.dtype)) for tensor_shape in example]
    ingredients = METHOD, bf16_pays(), reads_stored(), versions, shapes, described
    digest = hashlib.blake2b(repr(ingredients).encode(), digest_size=16)
    for name, tensor in graph.state_dict(keep_vars=True).items():
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(tensor.detach().contiguous().view(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def _kept(runtime, path: Path):
    """The compiled model in this file; None if there is no file, or if this version of OpenVINO cannot read it."""
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
    """Write a compiled model to this file of the cache folder; returns whether that worked."""
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
    """Delete the least recently used files until all files of the folder have at most ``most`` bytes together. The
    unfinished files of killed processes are included."""
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
    """Return the result of ``make``. If ``make`` raises an exception, log it and return None; the pass then runs
    without a graph. what: the part of the model that the log names."""
    return _or_none(make, f"There is no graph for {what}", level)


def through_module(make: Callable[[], T], what: str) -> T | None:
    """Return the result of ``make``. If ``make`` raises an exception, log it and return None; the model or part then
    runs as a plain module. what: the model or part that the log names."""
    return _or_none(make, f"{what} runs through its own module", logging.WARNING)


def _or_none(make: Callable[[], T], words: str, level: int) -> T | None:
    try:
        return make()
    except Exception as error:  # noqa: BLE001 - of OpenVINO, of a traced module: no common kind
        log.log(level, "%s: %s", words, in_one_line(error))
        return None
