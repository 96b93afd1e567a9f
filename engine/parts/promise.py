"""Compares the tensors that a configuration promises with the tensors in the files, before any tensor is read.

The model is built on the device meta, and transformers' own loader gives it meta tensors of the files' shapes, so that
prefixes, tied heads, renamed tensors and experts split over many tensors count as in a real loading. A checkpoint that
lacks a tensor is refused, because transformers would fill it with random numbers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import convert_and_load_state_dict_in_model
from transformers.modeling_utils import LoadStateDictConfig
from transformers.utils import logging as transformers_logging

from engine.errors import UserError

FLOAT = 4  # bytes of a weight: models are opened in float32 by default
ELSEWHERE = "transformers_weights"
"""A configuration entry that makes transformers read weights from other files than the checked ones."""
MOST_MADE = 1 << 24
"""The most numbers in tables that no file holds. transformers computes these tables in Python, with some 40 bytes and
one microsecond per number."""


class Promise(NamedTuple):
    """The model that a configuration describes.
    architecture: the name of the model's class. parameters: the number of its parameters. nbytes: bytes of the
    parameters in float32 and of all other tensors of the module."""

    architecture: str
    parameters: int
    nbytes: int


def check_promise(folder: Path, name: str, shapes: Mapping[str, tuple[int, ...]]) -> Promise:
    """Check that the files keep the promise of a configuration; return the promise. shapes: name -> shape of the
    tensors in the files. Raises UserError if the configuration is not a causal language model's, or if a tensor is
    missing or has another shape."""
    try:
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
        with torch.device("meta"):
            module = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
        promise, twins = _promise(module), _twins(module)
    except Exception as error:  # transformers raises many kinds for one cause
        raise UserError(f"There is no causal language model to open at {name}.") from error
    if any(getattr(settings, ELSEWHERE, None) is not None for settings in (config, module.config)):
        raise UserError(f"The configuration of {name} names a file of weights, which is not read.")
    try:
        with quiet():
            report = _loading(module, shapes)
    except Exception as error:
        raise UserError(f"The weights of {name} do not fit its configuration.") from error
    absent = missing(report.missing_keys, twins)
    module._adjust_missing_and_unexpected_keys(
        report
    )  # transformers makes the keys that it ignores
    lacking = [key for key in absent if key in report.missing_keys]
    for key, has, needs in sorted(report.mismatched_keys):
        raise UserError(
            f"{key} of {name} has the shape {list(has)}, but its configuration promises "
            f"{list(needs)}."
        )
    if report.conversion_errors or report.error_msgs:
        raise UserError(f"The weights of {name} do not fit its configuration.")
    refuse_missing(lacking, name)
    missing_numbers = sum(module.get_parameter_or_buffer(key).numel() for key in absent)
    if missing_numbers > MOST_MADE:
        raise UserError(f"The configuration of {name} asks for too much: {absent[0]}.")
    return promise


def missing(keys: set[str], twins: Mapping[str, set[str]]) -> list[str]:
    """The tensors that would have no values after loading: neither the tensor itself nor a tensor tied to it was
    loaded. keys: names of tensors that were not loaded. twins: name -> all names of the same tensor."""
    return sorted(key for key in keys if twins.get(key, {key}) <= keys)


def refuse_missing(keys: list[str], name: str) -> None:
    """Raises UserError if the list is not empty."""
    if keys:
        raise UserError(f"The weights of {name} lack {keys[0]}, which its configuration promises.")


def _twins(module: PreTrainedModel) -> dict[str, set[str]]:
    """Name -> all names of the same tensor, because the configuration ties it or because one module is used in two
    places."""
    groups: dict[int, set[str]] = defaultdict(set)
    for key, tensor in module.state_dict(keep_vars=True).items():
        groups[id(tensor)].add(key)
    twins = {key: group for group in groups.values() for key in group}
    for tensor, twin in module.all_tied_weights_keys.items():
        names = twins.get(tensor, {tensor}) | twins.get(twin, {twin})
        twins |= dict.fromkeys(names, names)
    return twins


@contextmanager
def quiet() -> Iterator[None]:
    """Hide transformers' progress bars and reports within the context."""
    bar, level = (
        transformers_logging.is_progress_bar_enabled(),
        transformers_logging.get_verbosity(),
    )
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(level)
        if bar:
            transformers_logging.enable_progress_bar()


def _promise(module: PreTrainedModel) -> Promise:
    parameters = sum(tensor.numel() for tensor in module.parameters())
    table_bytes = {id(tensor): tensor.nbytes for tensor in _tables(module)}
    return Promise(
        type(module).__name__, parameters, FLOAT * parameters + sum(table_bytes.values())
    )


def _tables(module: nn.Module) -> Iterator[Tensor]:
    """Tensors of the module that are no parameters, including tensors that are not registered as buffers."""
    for submodule in module.modules():
        values = [*vars(submodule).values(), *submodule._buffers.values()]
        yield from (value for value in values if isinstance(value, Tensor))


def _loading(module: PreTrainedModel, shapes: Mapping[str, tuple[int, ...]]):
    """transformers' report of loading tensors of these shapes into a module on the device meta."""
    tensors = {name: torch.empty(shape, device="meta") for name, shape in shapes.items()}
    how = LoadStateDictConfig(
        device_map={"": "meta"},
        dtype=torch.float32,
        weight_mapping=get_model_conversion_mapping(module),
    )
    return convert_and_load_state_dict_in_model(module, tensors, how, None)[0]
