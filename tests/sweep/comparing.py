"""One architecture: the texts that drafters write with the engine, compared with its own generate."""

import copy
import logging
from dataclasses import dataclass

import torch
from transformers import AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel

from engine.errors import UserError
from engine.model.language_model import LanguageModel
from engine.parts.loading import Models
from engine.parts.opening import language_model
from tests.drafters.writing import steps_of, text_of, usual
from tests.engine.tiny import generated

DRAFTERS = ("none", "prompt_lookup", "dyspec")
NEW = 24
PROMPT = (5, 9, 23, 40, 7, 9, 23, 40, 31, 12, 9, 23)
MOST_PARAMETERS = 12_000_000

EQUAL, REFUSED, UNBUILDABLE = "equal", "refused", "not buildable"
WRONG, TRACEBACK = "WRONG", "TRACEBACK"


@dataclass(frozen=True)
class Outcome:
    """The outcome for one drafter, or for all of them (drafter None). words: the sentence of a refusal, or the reason
    why the model was not built."""

    drafter: str | None
    kind: str
    words: str = ""

    @property
    def fine(self) -> bool:
        return self.kind in (EQUAL, REFUSED, UNBUILDABLE)


def random_module(config: PreTrainedConfig, seed: int = 0) -> PreTrainedModel:
    """Return a module in fp32 whose next tokens vary with the text. Raises the errors of building it."""
    with torch.device("meta"):
        size = sum(part.numel() for part in AutoModelForCausalLM.from_config(config).parameters())
    if size > MOST_PARAMETERS:
        raise ValueError(f"the smallest has {size:,} parameters")
    torch.manual_seed(seed)
    module = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for weight in module.parameters():
            if weight.dim() >= 2:
                weight.normal_(0, 0.25)
    return module


def outcomes(name: str, make_config, drafters=DRAFTERS, compiled: bool = False) -> list[Outcome]:
    """Return the outcomes for one architecture. make_config: returns the configuration, or raises an error of its
    checks. compiled: read the model as it is opened on a CPU; otherwise through its module, because compiling takes
    longer than writing all the texts."""
    try:
        module = random_module(make_config())
    except Exception as error:  # configurations and modules raise many kinds of exception
        logging.getLogger(__name__).debug(name, exc_info=error)
        return [Outcome(None, UNBUILDABLE, _line(error))]
    reference, noisy = copy.deepcopy(module), _noisy(module)
    try:
        model = language_model(module, None, name, lean=compiled)
        draft = language_model(noisy, None, name, lean=compiled)
    except UserError as refusal:
        return [Outcome(None, REFUSED, str(refusal))]
    except Exception as error:
        logging.getLogger(__name__).debug(name, exc_info=error)
        return [Outcome(None, TRACEBACK, _line(error))]
    expected = _generated(reference)
    return [_outcome(model, draft, key, expected) for key in drafters]


def _noisy(module: PreTrainedModel) -> PreTrainedModel:
    """Return a draft that is often right."""
    copied = copy.deepcopy(module)
    with torch.no_grad():
        for weight in copied.parameters():
            weight += 0.02 * weight.abs() * torch.randn_like(weight)
    return copied


def _generated(module: PreTrainedModel) -> list[int]:
    return generated(module, PROMPT, NEW, num_beams=1, pad_token_id=None)


def _outcome(model: LanguageModel, draft: LanguageModel, key: str, expected: list[int]) -> Outcome:
    try:
        written = _written(model, draft, key)
    except UserError as refusal:
        return Outcome(key, REFUSED, str(refusal))
    except Exception as error:
        logging.getLogger(__name__).debug(key, exc_info=error)
        return Outcome(key, TRACEBACK, _line(error))
    if written == expected:
        return Outcome(key, EQUAL, type(model).__name__)
    return Outcome(key, WRONG, f"{written} instead of {expected}")


def _written(model: LanguageModel, draft: LanguageModel, key: str) -> list[int]:
    chosen = {"budget": 8, "depth": 4} if key == "dyspec" else {}
    models = Models(model, {"draft": draft})
    return text_of(steps_of(models, usual(key, models, **chosen), PROMPT, NEW))


def _line(error: Exception) -> str:
    words = str(error).strip().splitlines()
    return f"{type(error).__name__}: {words[-1].strip() if words else ''}"[:200]
