"""A tuning whose models are loaded and whose prompts are tokenized, before any measurement."""

from __future__ import annotations

import os
from collections import Counter

import torch

from engine.chat.turns import ChatPrompt, has_template, read_prompt
from engine.core.sampling import Sampling
from engine.core.threads import ENGINE_LOCK
from engine.errors import UserError
from engine.model.language_model import LanguageModel
from engine.parts.loading import load_models
from engine.sizes.this_machine import processor
from engine.tune.candidates import at_first, chosen, needed, plain
from engine.tune.cost_table import CostTable
from engine.tune.prompt_sample import PromptText
from engine.tune.tuning_request import TuningRequest


class OpenedTuning:
    """The loaded models, tokenized prompts and first candidates of a tuning.

    prompts: pairs of the user's prompt and the tokens that the target receives. first: for every drafter, the
    candidates with its usual size and with a large one. draft: the draft model, or None. exact: whether the precision
    is so high that texts equal plain decoding's exactly, not only up to rounding.
    """

    def __init__(self, request: TuningRequest, sampling: Sampling) -> None:
        """Load the models and tokenize the prompts. Raises UserError, one sentence, for models, drafters and prompts
        that do not fit."""
        _check(request)
        classes = chosen(request.drafters, request.models, sampling)
        needs = dict(needed(classes))
        if "draft" in request.models.parts:
            needs.setdefault("draft", "draft")
        self.models = load_models(request.models, needs, request.dtype, request.device)
        target, draft = self.models.target, self.models.parts.get("draft")
        if target.known is not None:
            raise UserError("A tuning measures a target of this machine, not one behind an engine.")
        self.draft = draft if isinstance(draft, LanguageModel) else None
        self.prompts = _read(target, request)
        self.plain = plain(sampling)
        self.first = []
        for cls in classes:
            with ENGINE_LOCK:  # it may make graphs of models that other runs read
                tried = at_first(cls, sampling, self.models)
                for candidate in tried:  # a part that does not fit is told early
                    candidate.request(self.models, self.prompts[0][1], sampling, 1)
            self.first += tried
        self.texts = sorted({1, *request.texts})
        lengths = sorted(len(prompt.tokens) for _, prompt in self.prompts)
        half = request.new_tokens // 2
        longest = lengths[-1] + half if target.pads_texts else 0
        self.costs = CostTable(lengths[len(lengths) // 2] + half, longest=longest)
        self.exact = target.dtype.itemsize >= torch.float32.itemsize
        self.header = self._header(request, sampling)

    def _header(self, request: TuningRequest, sampling: Sampling) -> dict:
        sample = request.prompts
        return {
            "kind": "tuning",
            "schema": 1,
            "target": _size_of(self.models.target) | {"vocab_size": self.models.target.vocab_size},
            "draft": None if self.draft is None else _size_of(self.draft),
            "machine": {
                "processor": processor(),
                "cores": os.cpu_count(),
                "threads": torch.get_num_threads(),
            },
            "prompts": {
                "given": sample.given,
                "sampled": len(self.prompts),
                "empty": sample.empty,
                "left_out": len(sample.prompts) - len(self.prompts),
                "kinds": dict(Counter(asked.kind for asked, _ in self.prompts)),
                "digest": sample.digest,
            },
            "sampling": {
                name: getattr(sampling, name) for name in ("temperature", "top_k", "top_p", "seed")
            },
            "new_tokens": request.new_tokens,
            "texts": self.texts,
        }


def _check(request: TuningRequest) -> None:
    if not 8 <= request.new_tokens <= 4096:
        raise UserError(
            f"The number of new tokens must lie between 8 and 4096, not {request.new_tokens}."
        )
    if not all(1 <= count <= 64 for count in request.texts):
        raise UserError("The numbers of texts at a time must lie between 1 and 64.")


def _read(target: LanguageModel, request: TuningRequest) -> list[tuple[PromptText, ChatPrompt]]:
    """The prompts, with their tokens, that leave room in the target's context for the new tokens. If the target has a
    chat template, each prompt is a user's turn. Raises UserError if no prompt is left."""
    read, room, why = [], target.max_context - request.new_tokens, ""
    turns = has_template(target)
    for asked in request.prompts.prompts:
        messages = [{"role": "user", "content": asked.text}] if turns else None
        try:
            prompt = read_prompt(target, asked.text, messages)
        except UserError as error:
            why = why or str(error)
            continue
        if len(prompt.tokens) <= room:
            read.append((asked, prompt))
    if not read:
        told = f"the context of {target.name} holds {target.max_context} tokens, {request.new_tokens} of them for the answer"
        raise UserError(f"No prompt can be used: {why or told + '.'}")
    return read


def _size_of(model: LanguageModel) -> dict:
    """The model's name, its number of parameters, and the bytes of its weights in the type in which they are
    loaded."""
    size = model.dtype.itemsize * model.parameters
    return {"name": model.name, "parameters": model.parameters, "weight_bytes": size}
