"""Broken models: NaN in place of numbers ends in one sentence, and a draft may lack embeddings for some tokens, with
any drafter and however tokens are drawn."""

import copy
import dataclasses
import json
from functools import partial

import pytest
import torch

from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.errors import UserError
from engine.loops import run_loop
from engine.methods import drafters
from engine.model.language_model import LanguageModel
from engine.parts.loading import Models
from engine.parts.opening import language_model
from engine.proof.tiny_parts import tiny_parts
from engine.run import rule_for
from engine.trace import to_line
from engine.trace.recording import Recorder, Setting
from tests.drafters.writing import built
from tests.engine.tiny import VOCABULARY, tiny_hf_model
from tests.grids import some
from tests.lossless import lossless

SAMPLINGS = {"greedy": Sampling(), "drawn": Sampling(0.9, top_p=0.95, seed=4)}
PROMPT = [3, 14, 15, 9, 2, 6, 5, 35, 8, 9, 7, 9]
EVERY = list(drafters())


def in_turns(keys: list[str]) -> list:
    """Return every drafter with every way of drawing. ``make test`` takes one way for each drafter, in turns."""
    cases = [(key, sampling) for key in keys for sampling in SAMPLINGS]
    few = {(key, list(SAMPLINGS)[place % 2]) for place, key in enumerate(keys)}
    return some(cases, few.__contains__)


def opener(module, lean: bool = True):
    return language_model(module, None, "broken", lean)


def opener_of(key: str):
    """Return a function that opens models: compiled for targets and for the chain's draft model. Other drafts have
    their numbers checked in the same way."""
    return partial(opener, lean=key == "chain")


def models_of(target: LanguageModel, key: str) -> Models:
    return tiny_parts(target, [drafters()[key]], opener_of(key))


def write(models: Models, key: str, sampling: Sampling) -> list[int]:
    """Write a text, and return the tokens in the lines of its trace, so that values that JSON cannot hold are
    noticed."""
    cls = drafters()[key]
    rule = rule_for(None, cls, sampling)()
    drafter = built(cls, models)
    setting = Setting({"key": key}, {"key": rule.key}, sampling, cls.loop, rule=rule)
    models.target.tokenizer = Numbers()  # the tiny model has none
    recorder = Recorder(models.target, setting, "", [])
    written = []
    for step in run_loop(models.target, TextRequest(drafter, rule, sampling, PROMPT, 12)):
        written += json.loads(to_line(recorder.step_line(step)))["output"]["tokens"]
    return written


class Numbers:
    """A tokenizer whose tokens are their numbers, separate words."""

    all_special_ids = ()

    def __len__(self):
        return VOCABULARY

    def __call__(self, text, add_special_tokens=False):
        return {"input_ids": [1, 2]}

    def decode(self, tokens, **settings):
        return " ".join(map(str, tokens))

    def convert_ids_to_tokens(self, token):
        return str(token)


def deeper(**changes):
    """Four layers, so that a drafter that skips middle layers has some to choose from."""
    return tiny_hf_model("llama", num_hidden_layers=4, **changes)


@pytest.fixture(scope="module")
def target() -> LanguageModel:
    return opener(deeper())


@pytest.fixture(scope="module")
def broken() -> LanguageModel:
    """A target with NaN for one token of the vocabulary, as an overflow would leave it."""
    module = deeper()
    with torch.no_grad():
        module.get_output_embeddings().weight[3] = float("nan")
    return opener(module)


@pytest.mark.parametrize(("key", "sampling"), in_turns(EVERY))
def test_nan_in_the_target_is_one_sentence(key, sampling, broken):
    with pytest.raises(UserError, match="gave NaN"):
        write(models_of(broken, key), key, SAMPLINGS[sampling])


def module_of(part):
    """The module with the weights of a part: that of a language model, which the part may hold, or the part itself."""
    inner = getattr(part, "model", None)
    if isinstance(inner, LanguageModel):
        return inner.model
    return part.model if isinstance(part, LanguageModel) else part


def again(part, opener):
    """Return the part. If it is or holds a language model, that model is opened anew with the same weights."""
    if isinstance(part, LanguageModel):
        return opener(part.model)
    held = isinstance(getattr(part, "model", None), LanguageModel)
    return dataclasses.replace(part, model=opener(part.model.model)) if held else part


WEIGHTED = [key for key in EVERY if {*drafters()[key].needs.values()} - {"datastore"}]
"""Drafters with a part that has weights."""


@pytest.mark.parametrize(("key", "sampling"), in_turns(WEIGHTED))
def test_nan_in_a_part_is_one_sentence(key, sampling, target):
    models = models_of(target, key)
    for part in models.parts.values():
        module = module_of(part)
        if not isinstance(module, torch.nn.Module):
            continue  # a datastore beside a draft model
        with torch.no_grad():
            list(module.parameters())[-1][0] = float("nan")
    parts = {role: again(part, opener_of(key)) for role, part in models.parts.items()}
    with pytest.raises(UserError, match="gave NaN"):
        write(Models(models.target, parts), key, SAMPLINGS[sampling])


@pytest.fixture(scope="module")
def pair_of_sizes() -> tuple[int, Models]:
    """The number of tokens that the draft knows, and the models. The target favours the ids that the draft has no
    embedding for, so that they appear in the draft's context at once."""
    module = deeper()
    known = 40
    with torch.no_grad():
        module.get_output_embeddings().weight[known:] *= 6
    return known, Models(opener(module), {"draft": opener(cut(module, known))})


@pytest.fixture(scope="module")
def alone(pair_of_sizes) -> list[int]:
    """The greedy text of that target without a draft."""
    return write(pair_of_sizes[1], "none", Sampling())


DRAFTED = [key for key in EVERY if drafters()[key].needs == {"draft": "draft"}]


def greedy_and_each_kind_drawn() -> list:
    """Return every drafter with every way of drawing. ``make test`` takes all greedy texts, and drawn ones for a
    drafter of each loop, shape of draft and kind of draw, where the same code pads laws of fewer tokens."""
    kinds: dict[tuple, str] = {}
    for key, cls in zip(DRAFTED, map(drafters().get, DRAFTED), strict=True):
        kinds.setdefault((cls.loop, cls.shape, *sorted(cls.kinds(SAMPLINGS["drawn"]))), key)
    cases = [(key, sampling) for key in DRAFTED for sampling in SAMPLINGS]
    return some(cases, lambda case: case[1] == "greedy" or case[0] in kinds.values())


@pytest.mark.parametrize(("key", "sampling"), greedy_and_each_kind_drawn())
def test_a_draft_may_know_fewer_tokens_than_the_target_writes(key, sampling, pair_of_sizes, alone):
    """For example, one checkpoint of a family is padded further than the other."""
    known, models = pair_of_sizes
    written = write(models, key, SAMPLINGS[sampling])
    assert len(written) == 12
    if drafters()[key].loop != "switching":
        assert max(written) >= known, "this would not show the fault"
    if sampling == "greedy" and key in lossless():
        assert written == alone


def cut(module, known: int):
    """Return the same model with the first ``known`` tokens only."""
    small = copy.deepcopy(module)
    small.config.vocab_size = known
    for name in ("embed_tokens", "lm_head"):
        owner = small.model if name == "embed_tokens" else small
        layer = getattr(owner, name)
        layer.weight = torch.nn.Parameter(layer.weight.detach()[:known].clone())
    small.model.embed_tokens.num_embeddings = small.lm_head.out_features = known
    return small
