"""Reads from a checkpoint its own sampling settings, and the tokens that end its texts."""

from collections.abc import Iterable
from typing import NamedTuple

from transformers import GenerationConfig, PreTrainedModel

from engine.core.ending import check_stop_strings
from engine.core.sampling import CUTS
from engine.errors import UserError


class Ends(NamedTuple):
    """The token ids that end a text. named_by: the source of the ids, one of generation config | config | tokenizer |
    nobody.

    If the generation config names no such ids, transformers' ``generate`` writes on to the greatest length. Here, the
    model's config or the tokenizer may still end the text, because a reader expects an end. For a comparison, pass these
    ids to ``generate`` (``eos_token_id=sorted(tokens)``).
    """

    tokens: frozenset[int]
    named_by: str


def ends_of(model: PreTrainedModel, tokenizer) -> Ends:
    """The tokens that end the texts of this model, from the first source that names any."""
    places = {
        "generation config": getattr(model.generation_config, "eos_token_id", None),
        "config": getattr(model.config.get_text_config(), "eos_token_id", None),
        "tokenizer": getattr(tokenizer, "eos_token_id", None),
    }
    for named_by, ends in places.items():
        tokens = _ids(ends)
        if tokens:
            return Ends(tokens, named_by)
    return Ends(frozenset(), "nobody")


def _ids(ends: object) -> frozenset[int]:
    listed = ends if isinstance(ends, Iterable) else [ends]
    return frozenset(token for token in listed if isinstance(token, int) and token >= 0)


def own_sampling(model: PreTrainedModel) -> dict:
    """The sampling settings of the model's generation config, as fields of ``Sampling``: temperature, top_k, top_p and
    further cuts. They are greedy if the config does not sample. Raises UserError if a setting is no number."""
    config = model.generation_config
    if not getattr(config, "do_sample", None):
        return {"temperature": 0.0, "top_k": 0, "top_p": 1.0, "cuts": ()}
    usual = {"temperature": 1.0, "top_k": 50, "top_p": 1.0}  # the defaults of transformers
    values = {name: getattr(config, name, None) for name in (*usual, *CUTS)}
    for name, value in values.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise UserError(f"The model's generation config has a {name} that is no number.")
    sampling = {name: usual[name] if values[name] is None else values[name] for name in usual}
    cuts = [(name, values[name]) for name in CUTS if values[name] not in (None, *CUTS[name])]
    return {**sampling, "cuts": tuple(cuts)}


def own_stop_strings(config: GenerationConfig | None) -> tuple[str, ...]:
    """The stop strings of a generation config; an empty tuple if the engine cannot search for them."""
    setting = getattr(config, "stop_strings", None) or ()
    strings = (setting,) if isinstance(setting, str) else tuple(setting)
    try:
        check_stop_strings(strings)
    except UserError:
        return ()
    return strings
