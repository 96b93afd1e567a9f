"""The rules of a checkpoint for generation, as a constraint: a forced end at the greatest length,
forbidden words and repetitions, no ends that come too early.

The rules are transformers' own, named in ``generation_config.json``. Rules that change numbers instead of
forbidding tokens (penalties, guidance) are not applied; ``unapplied`` names them.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor
from transformers import (
    ForcedEOSTokenLogitsProcessor,
    GenerationConfig,
    LogitsProcessorList,
    MinLengthLogitsProcessor,
    MinNewTokensLengthLogitsProcessor,
    NoBadWordsLogitsProcessor,
    NoRepeatNGramLogitsProcessor,
    SuppressTokensAtBeginLogitsProcessor,
    SuppressTokensLogitsProcessor,
)

from engine.constraint import Constraint, Joined
from engine.target.language_model import LanguageModel
from engine.text import TextRequest

_NEUTRAL = {"repetition_penalty": 1.0, "guidance_scale": 1.0}
NOTHING_LEFT = (
    "The text cannot go on: the rules of the target's checkpoint (such as suppress_tokens or bad_words_ids) forbid "
    "every token that may come next."
)
_NUMBERS = (*_NEUTRAL, "sequence_bias", "exponential_decay_length_penalty", "watermarking_config")


def with_rules(target: LanguageModel, request: TextRequest) -> TextRequest:
    """The request with the rules of the target's checkpoint, beneath a constraint of its own if it has one. Such a
    constraint decides where the text ends: rules about its length are left out."""
    asked = request.constraint
    rules = _processors(target, len(request.prompt), request.max_new_tokens, asked is None)
    if not rules:
        return request
    found: Constraint = CheckpointRules(rules, request.prompt, target.vocab_size)
    if asked is not None:
        found = Joined((asked, found), NOTHING_LEFT)
    return replace(request, constraint=found)


def unapplied(config: GenerationConfig) -> list[str]:
    """Rules of a checkpoint that the engine leaves out: "name = value"."""
    given = {name: getattr(config, name, None) for name in _NUMBERS}
    return [
        f"{name} = {value}"
        for name, value in given.items()
        if value is not None and value != _NEUTRAL.get(name)
    ]


class CheckpointRules(Constraint):
    """One instance holds the state of one text."""

    def __init__(self, rules: LogitsProcessorList, prompt: Sequence[int], vocabulary: int) -> None:
        """vocabulary: width of the target's logits."""
        self._rules = rules
        self._text = list(prompt)
        self._scores = torch.zeros(1, vocabulary)
        self.committed = 0

    def allowed(self, continuation: Sequence[int]) -> Tensor | None:
        text = torch.tensor([[*self._text, *continuation]])
        kept = self._rules(text, self._scores.clone())[0] > float("-inf")
        return None if bool(kept.all()) else kept

    def commit(self, tokens: Sequence[int]) -> None:
        self._text += tokens
        self.committed += len(tokens)


def _processors(target: LanguageModel, prompt: int, new: int, lengths: bool) -> LogitsProcessorList:
    """prompt: number of its tokens. new: the most tokens that are written. lengths: with the rules about the length of
    the text."""
    config, ends = target.model.generation_config, sorted(target.end_tokens)
    found = LogitsProcessorList()
    if config is None:
        return found
    if config.no_repeat_ngram_size:
        found.append(NoRepeatNGramLogitsProcessor(config.no_repeat_ngram_size))
    if config.bad_words_ids:
        found.append(NoBadWordsLogitsProcessor(config.bad_words_ids, ends or None))
    if lengths and config.min_length and ends:
        found.append(MinLengthLogitsProcessor(config.min_length, ends))
    if lengths and config.min_new_tokens and ends:
        found.append(MinNewTokensLengthLogitsProcessor(prompt, config.min_new_tokens, ends))
    if lengths and config.forced_eos_token_id is not None:
        found.append(ForcedEOSTokenLogitsProcessor(prompt + new, config.forced_eos_token_id))
    if config.suppress_tokens:
        found.append(SuppressTokensLogitsProcessor(config.suppress_tokens))
    if config.begin_suppress_tokens:
        found.append(SuppressTokensAtBeginLogitsProcessor(config.begin_suppress_tokens, prompt))
    return found
