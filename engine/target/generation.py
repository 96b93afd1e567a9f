"""A checkpoint's own sampling settings, and the tokens that end its texts."""

from collections.abc import Iterable
from typing import NamedTuple

from transformers import PreTrainedModel


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
        found = _ids(ends)
        if found:
            return Ends(found, named_by)
    return Ends(frozenset(), "nobody")


def _ids(ends: object) -> frozenset[int]:
    given = ends if isinstance(ends, Iterable) else [ends]
    return frozenset(one for one in given if isinstance(one, int) and one >= 0)


def own_sampling(model: PreTrainedModel) -> dict[str, float]:
    """temperature, top_k and top_p of the model's generation config; greedy if it does not sample."""
    config = model.generation_config
    if not getattr(config, "do_sample", None):
        return {"temperature": 0.0, "top_k": 0, "top_p": 1.0}
    usual = {"temperature": 1.0, "top_k": 50, "top_p": 1.0}  # the defaults of transformers
    found = {name: getattr(config, name, None) for name in usual}
    return {name: usual[name] if value is None else value for name, value in found.items()}
