"""Which way of reading a module is right, if any: found out when the model is opened, and remembered.

Architectures that the tests have proven cost nothing. Any other one is read a few short texts by, by its module and
by the engine (``engine.target.self_check``), once for an architecture, a library version and a device.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Mapping

import torch
import transformers
from transformers import PreTrainedModel

from engine.errors import UserError
from engine.remembered import Remembered
from engine.target import self_check
from engine.target.language_model import LanguageModel, refuse_unreadable
from engine.target.proven import proven_way

METHOD = 1  # of checking; what was remembered by another one is not used
CHAINS = "chains"
_MEMORY = Remembered("self_checks.json")
_REFUSED = "refused: "

Ways = Mapping[str, Callable[[], LanguageModel]]
"""By name, the best first; ``chains`` is the one in which trees are not read."""


def admitted(module: PreTrainedModel, name: str, ways: Ways, setting: str) -> LanguageModel:
    """The model in the first way that reads as its module does.

    setting: what else the ways depend on. Raises UserError, one sentence, where there is none.
    """
    refuse_unreadable(module, name)
    proven = proven_way(module)
    if proven is not None:
        return ways[proven]()
    found = _remembered(module, ways, setting)
    if found.startswith(_REFUSED):
        raise UserError(f"{name} {found.removeprefix(_REFUSED)}")
    model = ways[found]()
    untried = self_check.longest_tried(module)
    if untried is not None:
        model.max_context = min(model.max_context, untried)
    return model


def _remembered(module: PreTrainedModel, ways: Ways, setting: str) -> str:
    key, memory = _key(module, setting), _MEMORY.read()
    found = memory.get(key)
    if found not in ways and not str(found).startswith(_REFUSED):
        found = _found_out(module, ways)
        _MEMORY.write(memory | {key: found})
    return found


def _key(module: PreTrainedModel, setting: str) -> str:
    """Class, versions, and all of the configuration, for what a module does depends on it."""
    config = json.loads(module.config.to_json_string())
    config.pop("_name_or_path", None)
    versions = [METHOD, transformers.__version__, torch.__version__]
    shape = [*versions, str(module.dtype), module.device.type, setting, config]
    digest = hashlib.sha256(json.dumps(shape, sort_keys=True).encode()).hexdigest()
    return f"{type(module).__name__} {digest[:16]}"


def _found_out(module: PreTrainedModel, ways: Ways) -> str:
    """The name of a way, or why there is none."""
    attention = module.config._attn_implementation
    try:
        expected = self_check.readings(module)
    except Exception as error:  # modules raise many kinds for one cause
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
