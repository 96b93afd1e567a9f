"""What a checkpoint says about how it wants to be sampled, and where its texts end."""

from collections.abc import Iterable
from typing import NamedTuple

from transformers import PreTrainedModel


class Ends(NamedTuple):
    """Ids that end a text, and who names them: generation config | config | tokenizer | nobody.

    ``generate`` of transformers goes on where the generation config names none. Here the tokenizer's
    end of text then ends a text all the same, because a reader expects it; whoever compares must give
    ``generate`` these ids (``eos_token_id=sorted(tokens)``).
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
    """temperature, top_k and top_p of the model's generation config; greedy where it does not sample."""
    config = model.generation_config
    if not getattr(config, "do_sample", None):
        return {"temperature": 0.0, "top_k": 0, "top_p": 1.0}
    usual = {"temperature": 1.0, "top_k": 50, "top_p": 1.0}  # as transformers has them
    found = {name: getattr(config, name, None) for name in usual}
    return {name: usual[name] if value is None else value for name, value in found.items()}
