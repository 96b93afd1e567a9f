"""The rules of a checkpoint for generation, as a constraint: forced first and last tokens, forbidden words and
repetitions, and a minimum length.

The rules are transformers' own, and ``generation_config.json`` states them. Other settings in that file that would
change the text of ``generate`` (beams, penalties, guidance) are not applied; ``unapplied`` lists them.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor
from transformers import (
    ForcedBOSTokenLogitsProcessor,
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

from engine.core.constraint import Constraint, Joined
from engine.core.sampling import CUTS
from engine.core.text import TextRequest
from engine.errors import UserError
from engine.model.generation import own_stop_strings
from engine.model.language_model import LanguageModel

NOTHING_LEFT = (
    "The text cannot go on: the rules of the target's checkpoint (such as suppress_tokens or bad_words_ids) forbid "
    "every token that may come next."
)
_RULES = {
    "no_repeat_ngram_size", "bad_words_ids", "min_length", "min_new_tokens", "forced_bos_token_id",
    "forced_eos_token_id", "suppress_tokens", "begin_suppress_tokens",
}  # fmt: skip
_APPLIED = {*_RULES, "eos_token_id", "stop_strings"}
_OF_SAMPLING = {"do_sample", "temperature", "top_k", "top_p", *CUTS}
"""Settings that are applied only if a run takes its sampling from the checkpoint (``own_sampling``). Other runs have
sampling settings of their own."""
_NO_CHANGE = {
    "bos_token_id", "pad_token_id", "decoder_start_token_id", "max_length", "max_new_tokens", "use_cache",
    "cache_config", "max_cache_len", "prefill_chunk_size", "compile_config", "disable_compile", "low_memory",
    "continuous_batching_config", "output_attentions", "output_hidden_states", "output_logits", "output_scores",
    "return_dict_in_generate", "transformers_version", "renormalize_logits", "is_assistant", "num_assistant_tokens",
    "num_assistant_tokens_schedule", "assistant_confidence_threshold", "assistant_early_exit", "assistant_lookbehind",
    "target_lookbehind", "prompt_lookup_num_tokens", "max_matching_ngram_size", "speculation_type", "use_mtp",
    "early_stopping", "length_penalty", "num_beam_groups", "diversity_penalty",
}  # fmt: skip
"""Settings that need no mention: lengths, which every run sets itself; settings of speed; settings of the result's
form; and settings that only beam search uses (``unapplied`` lists ``num_beams`` itself)."""
_NEUTRAL = {
    "repetition_penalty": 1, "encoder_repetition_penalty": 1, "guidance_scale": 1, "num_beams": 1,
    "num_return_sequences": 1,
}  # fmt: skip
_SAME_NUMBERS = {"static", "dynamic", "offloaded", "offloaded_static", "hybrid", "sliding_window"}
"""Kinds of cache that keep keys and values as they are."""


def with_rules(target: LanguageModel, request: TextRequest) -> TextRequest:
    """The request with one joint constraint, made from up to three: the request's own constraint, the rules of the
    target's checkpoint, and the verifier's reweighting of tokens. A constraint of the request's own decides where the
    text ends, so if the request has one, the checkpoint's rules about length are left out."""
    own_constraint = request.constraint
    rules = _processors(target, len(request.prompt), request.max_new_tokens, own_constraint is None)
    own = CheckpointRules(rules, request.prompt, target.vocab_size) if rules else None
    weighing = request.verifier.weighing(target, request.prompt)
    if own is None and weighing is None:
        return request
    joined = [
        constraint for constraint in (own_constraint, own, weighing) if constraint is not None
    ]
    return replace(request, constraint=Joined(joined, NOTHING_LEFT))


def unapplied(config: GenerationConfig, cuts: bool = True) -> list[str]:
    """The settings of a checkpoint that would change the text of ``generate`` and that the engine does not apply, each
    as "name = value". cuts: whether a run with the checkpoint's sampling applies all truncations in
    ``engine.core.sampling.CUTS``."""
    names = vars(GenerationConfig()).keys() - _APPLIED - _OF_SAMPLING - _NO_CHANGE
    if not cuts:
        names |= {name for name in CUTS if getattr(config, name, None) not in CUTS[name]}
    values = {name: getattr(config, name, None) for name in sorted(names) if name[0] != "_"}
    if values.get("cache_implementation") in _SAME_NUMBERS:
        del values["cache_implementation"]
    if config.stop_strings and not own_stop_strings(config):
        values["stop_strings"] = config.stop_strings
    return [
        f"{name} = {value}"
        for name, value in values.items()
        if value and value != _NEUTRAL.get(name)
    ]


def check_rules(target: LanguageModel) -> None:
    """Raise UserError if the rules of the target's checkpoint cannot be followed with its vocabulary."""
    prompt, new = [0] * 4, 8
    try:
        own = CheckpointRules(_processors(target, len(prompt), new), prompt, target.vocab_size)
        rules = Joined((own,), NOTHING_LEFT)
        for count in range(new):
            rules.allowed([0] * count)
    except UserError:
        raise
    except Exception as error:  # each rule raises kinds of its own
        raise UserError(
            f"The generation_config.json of {target.name} has rules that cannot be followed."
        ) from error


class CheckpointRules(Constraint):
    """The rules of a checkpoint as a constraint on one text, whose tokens it remembers."""

    def __init__(self, rules: LogitsProcessorList, prompt: Sequence[int], vocabulary: int) -> None:
        """vocabulary: the width V of the target's logits."""
        self._rules = rules
        self._text = list(prompt)
        self._scores = torch.zeros(1, vocabulary)
        self.committed = 0
        self.key = "rules of the checkpoint"

    def allowed(self, continuation: Sequence[int]) -> Tensor | None:
        text = torch.tensor([[*self._text, *continuation]])
        allowed_tokens = self._rules(text, self._scores.clone())[0] > float("-inf")
        return None if bool(allowed_tokens.all()) else allowed_tokens

    def commit(self, tokens: Sequence[int]) -> None:
        self._text += tokens
        self.committed += len(tokens)


def _processors(
    target: LanguageModel, prompt: int, new: int, lengths: bool = True
) -> LogitsProcessorList:
    """The logits processors of transformers for the rules of the target's checkpoint.

    prompt: number of tokens in the prompt. new: the most tokens that are written. lengths: include the rules about the
    length of the text."""
    config, ends = target.model.generation_config, sorted(target.end_tokens)
    processors = LogitsProcessorList()
    if config is None:
        return processors
    if config.no_repeat_ngram_size:
        processors.append(NoRepeatNGramLogitsProcessor(config.no_repeat_ngram_size))
    if config.bad_words_ids:
        processors.append(NoBadWordsLogitsProcessor(config.bad_words_ids, ends or None))
    if lengths and config.min_length and ends:
        processors.append(MinLengthLogitsProcessor(config.min_length, ends))
    if lengths and config.min_new_tokens and ends:
        processors.append(MinNewTokensLengthLogitsProcessor(prompt, config.min_new_tokens, ends))
    if lengths and config.forced_bos_token_id is not None:
        processors.append(ForcedBOSTokenLogitsProcessor(config.forced_bos_token_id))
    if lengths and config.forced_eos_token_id is not None:
        processors.append(ForcedEOSTokenLogitsProcessor(prompt + new, config.forced_eos_token_id))
    if config.suppress_tokens:
        processors.append(SuppressTokensLogitsProcessor(config.suppress_tokens))
    if config.begin_suppress_tokens:
        begin = prompt + (prompt == 1 and config.forced_bos_token_id is not None)
        processors.append(SuppressTokensAtBeginLogitsProcessor(config.begin_suppress_tokens, begin))
    return processors
