"""Finds out, when a model is opened, which of the engine's ways of running its module gives the module's own logits,
and remembers the result.

For architectures that the tests have proven, nothing needs to be compared. For any other architecture, the module
itself and the engine are both run over a few short texts (``engine.model.self_check``), once per architecture, library
version and device.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Mapping

import torch
import transformers
from transformers import PreTrainedModel

from engine.errors import UserError
from engine.model import self_check
from engine.model.language_model import LanguageModel, refuse_unreadable
from engine.model.proven import proven_way
from engine.remembered import Remembered

METHOD = 1  # version of the check; results of other versions are not used
CHAINS = "chains"
_MEMORY = Remembered("self_checks.json")
_REFUSED = "refused: "

Ways = Mapping[str, Callable[[], LanguageModel]]
"""The ways of running a module, by name, the best way first. Each value is a function that opens the model in that way.
A model opened in the way ``chains`` cannot read trees, only chains."""


def admitted(module: PreTrainedModel, name: str, ways: Ways, setting: str) -> LanguageModel:
    """The model, opened in the first way that gives the same logits as the module itself.

    setting: a text that names anything, besides the module, on which the ways depend. Raises UserError if no way gives
    the module's logits.
    """
    refuse_unreadable(module, name)
    proven = proven_way(module)
    if proven is not None:
        return ways[proven]()
    way = _remembered(module, ways, setting)
    if way.startswith(_REFUSED):
        raise UserError(f"{name} {way.removeprefix(_REFUSED)}")
    model = ways[way]()
    untried = self_check.longest_tried(module)
    if untried is not None:
        model.max_context = min(model.max_context, untried)
    return model


def _remembered(module: PreTrainedModel, ways: Ways, setting: str) -> str:
    key, memory = _key(module, setting), _MEMORY.read()
    result = memory.get(key)
    if result not in ways and not str(result).startswith(_REFUSED):
        result = _found_out(module, ways)
        _MEMORY.write(memory | {key: result})
    return result


def _key(module: PreTrainedModel, setting: str) -> str:
    """The key of a module in the file of remembered results: the module's class and a digest of versions, dtype, device
    and the whole configuration, because the module's behaviour depends on all of these."""
    config = json.loads(module.config.to_json_string())
    config.pop("_name_or_path", None)
    versions = [METHOD, transformers.__version__, torch.__version__]
    shape = [*versions, str(module.dtype), module.device.type, setting, config]
    digest = hashlib.sha256(json.dumps(shape, sort_keys=True).encode()).hexdigest()
    return f"{type(module).__name__} {digest[:16]}"


def _found_out(module: PreTrainedModel, ways: Ways) -> str:
    """The name of the first way that gives the module's own logits; or _REFUSED, followed by the reason why the module
    is refused."""
    attention = module.config._attn_implementation
    try:
        expected = self_check.readings(module)
    except Exception as error:  # modules raise many kinds of exception for one cause
        logging.getLogger(__name__).debug("no reading", exc_info=error)
        return f"{_REFUSED}is refused: its module does not generate from a prompt of tokens alone."
    for way, build in ways.items():
        try:
            if _reads_alike(build(), way, expected):
                return way
        except Exception as error:
            logging.getLogger(__name__).debug("%s does not read", way, exc_info=error)
        finally:
            if module.config._attn_implementation != attention:
                module.set_attn_implementation(attention)
    return _REFUSED + _why(module)


def _reads_alike(model: LanguageModel, way: str, expected: list[self_check.Reading]) -> bool:
    chains = self_check.same_chains(model, expected)
    return chains and (way == CHAINS or self_check.same_trees(model, expected))


def _why(module: PreTrainedModel) -> str:
    try:
        if not self_check.reads_from_left_to_right(module):
            off = getattr(module.config, "is_decoder", True) is False
            hint = " (is_decoder is off in its configuration)" if off else ""
            return (
                f"does not read from left to right{hint}; nothing can be drafted behind its text."
            )
    except Exception as error:
        logging.getLogger(__name__).debug("not read", exc_info=error)
    return (
        f"is refused: read by the engine, a text gets other logits than {type(module).__name__} gives it, "
        "and what would be written would be wrong."
    )
