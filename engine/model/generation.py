"""A checkpoint's own sampling settings, and the tokens that end its texts."""

from collections.abc import Iterable
from typing import NamedTuple

from transformers import GenerationConfig, PreTrainedModel

from engine.core.ending import check_stop_strings
from engine.core.sampling import CUTS
from engine.errors import UserError


class Ends(NamedTuple):
    """Ids that end a text, and the source that names them: generation config | config | tokenizer | nobody.

    If the generation config names none, ``generate`` of transformers goes on. Here the tokenizer's
    end of text still ends a text, because a reader expects it; for a comparison, pass these ids to
    ``generate`` (``eos_token_id=sorted(tokens)``).
    """

    tokens: frozenset[int]
    named_by: str


def ends_of(model: PreTrainedModel, tokenizer) -> Ends:
    """Where texts of this model end."""
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
    """temperature, top_k, top_p and further cuts of the model's generation config, as fields of ``Sampling``; greedy if it
    does not sample. Raises UserError for a setting that is no number."""
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
    """The stop strings of a generation config; none if the engine cannot look for them."""
    setting = getattr(config, "stop_strings", None) or ()
    strings = (setting,) if isinstance(setting, str) else tuple(setting)
    try:
        check_stop_strings(strings)
    except UserError:
        return ()
    return strings
