"""Tokens that a checkpoint forbids or forces: texts equal those of ``generate`` with the same configuration."""

import copy
import logging
from dataclasses import replace
from functools import cache

import pytest
import torch
from tokenizers import Tokenizer, models
from transformers import GenerationConfig, PreTrainedTokenizerFast

from engine.batch.together import decode_together
from engine.core.constraint import Constraint
from engine.core.sampling import Sampling, distribution
from engine.core.text import TextRequest
from engine.errors import UserError
from engine.loops import run_loop
from engine.model.checkpoint_rules import check_rules, unapplied
from engine.model.generation import own_sampling
from engine.parts.loading import Models
from engine.parts.opening import language_model, load_language_model
from engine.rules import verifier
from tests.drafters.writing import text_of, usual
from tests.engine.tiny import generated, tiny_hf_model

PROMPT = [5, 9, 23, 40, 7, 9, 23, 40, 31, 12, 9, 23]
NEW = 18
RULES = {
    "forced end": {"forced_eos_token_id": 3},
    "no repeated pairs": {"no_repeat_ngram_size": 2},
    "suppressed": {"suppress_tokens": list(range(5, 40))},
    "suppressed at the beginning": {"begin_suppress_tokens": list(range(30))},
    "bad words": {"bad_words_ids": [[9], [12, 31], [40]]},
    "no early end": {"min_new_tokens": 6, "eos_token_id": list(range(0, 61, 2))},
    "least length": {"min_length": 17, "eos_token_id": list(range(0, 61, 2))},
}
CUTS = {
    "min-p": {"min_p": 0.2},
    "typical": {"typical_p": 0.5},
    "top-h": {"top_h": 0.4, "top_k": 0},
    "epsilon": {"epsilon_cutoff": 0.02},
    "eta": {"eta_cutoff": 0.05},
    "several": {"temperature": 0.7, "top_k": 30, "top_p": 0.9, "min_p": 0.05, "typical_p": 0.8},
    "none": {"temperature": 1.3, "min_p": 0.0, "typical_p": 1.0},
}
NAMED = {
    "num_beams": 4, "num_return_sequences": 2, "penalty_alpha": 0.6, "repetition_penalty": 1.1, "guidance_scale": 1.5,
    "encoder_repetition_penalty": 1.2, "encoder_no_repeat_ngram_size": 3, "sequence_bias": [[[4], -2.0]],
    "exponential_decay_length_penalty": [5, 1.1], "max_time": 3.0, "token_healing": True, "dola_layers": "high",
    "cache_implementation": "quantized", "remove_invalid_values": True, "force_words_ids": [[4]],
    "assistant_ensemble_weight": 0.5, "constraints": [1], "watermarking_config": {"bias": 2.0},
}  # fmt: skip
UNNAMED = {
    "num_beams": 1, "repetition_penalty": 1.0, "guidance_scale": 1.0, "encoder_repetition_penalty": 1.0, "max_length": 9,
    "temperature": 0.7, "top_k": 20, "min_p": 0.6, "typical_p": 0.2, "do_sample": True, "length_penalty": 2.0,
    "no_repeat_ngram_size": 2, "bad_words_ids": [[4]], "stop_strings": ["a"], "forced_bos_token_id": 3,
    "cache_implementation": "static", "prompt_lookup_num_tokens": 3, "sequence_bias": None, "token_healing": False,
}  # fmt: skip


@cache
def pair(name: str):
    """Return (the text of generate without the rules of this name, its text with the rules, the model)."""
    rules = RULES[name]
    module = tiny_hf_model("gpt2", seed=2)

    def written(**given) -> list[int]:
        module.generation_config = GenerationConfig(**given)
        return generated(module, PROMPT, NEW)

    ends = {"eos_token_id": rules["eos_token_id"]} if "eos_token_id" in rules else {}
    without, expected = written(**ends), written(**rules)
    return without, expected, language_model(copy.deepcopy(module), None, "ruled", lean=False)


def request_of(model, key: str) -> TextRequest:
    chosen = {"budget": 6} if key == "dyspec" else {}
    made = usual(key, Models(model, {"draft": model}), **chosen)
    return TextRequest(made, verifier("greedy"), Sampling(), PROMPT, NEW)


@pytest.mark.parametrize("key", ["none", "prompt_lookup", "dyspec"])
@pytest.mark.parametrize("name", RULES)
def test_texts_follow_the_rules(name, key):
    without, expected, model = pair(name)
    assert without != expected, "this rule would not be noticed"
    assert text_of(run_loop(model, request_of(model, key))) == expected


def test_texts_that_share_passes_follow_them_each():
    _, expected, model = pair("forced end")
    texts: dict[int, list[int]] = {0: [], 1: []}
    requests = [request_of(model, "none"), request_of(model, "prompt_lookup")]
    for index, step in decode_together(model, requests):
        texts[index] += step.output
    assert texts == {0: expected, 1: expected}


def config_of(**settings) -> GenerationConfig:
    """Return a configuration, also with settings that transformers reads but would refuse to write."""
    made = GenerationConfig()
    for name, value in settings.items():
        setattr(made, name, value)
    return made


def test_settings_that_would_change_the_text_and_are_left_out_are_named_and_no_others():
    for name, value in NAMED.items():
        assert unapplied(config_of(**{name: value})) == [f"{name} = {value}"]
    for name, value in UNNAMED.items():
        assert unapplied(config_of(**{name: value})) == [], name
    cut, stops = config_of(do_sample=True, min_p=0.6, typical_p=1.0), ["a"] * 30
    assert unapplied(cut, cuts=False) == ["min_p = 0.6"], "where cuts are not made"
    assert unapplied(config_of(stop_strings=stops)) == [f"stop_strings = {stops}"], "too many"


def test_a_first_token_is_forced_where_generate_forces_it():
    module = tiny_hf_model("gpt2", seed=2)
    module.generation_config = GenerationConfig(forced_bos_token_id=17, begin_suppress_tokens=[4])
    expected = generated(module, [5], 6)
    model = language_model(copy.deepcopy(module), None, "ruled", lean=False)
    request = replace(request_of(model, "none"), prompt=[5], max_new_tokens=6)
    found = text_of(run_loop(model, request))
    assert found == expected and found[0] == 17


@pytest.mark.parametrize("name", CUTS)
def test_the_model_s_own_sampling_cuts_as_generate_does(name):
    module = tiny_hf_model("gpt2", seed=2)
    module.generation_config = GenerationConfig(do_sample=True, **CUTS[name])
    ids = torch.tensor([PROMPT])
    torch.manual_seed(3)
    told = module.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=12, pad_token_id=0,
        return_dict_in_generate=True, output_scores=True, output_logits=True,
    )  # fmt: skip
    logits, scores = torch.cat(told.logits), torch.cat(told.scores)
    found = distribution(logits, Sampling(**own_sampling(module)))
    torch.testing.assert_close(found, scores.softmax(-1), atol=1e-6, rtol=1e-4)
    assert (name == "none") == bool(torch.equal(found > 0, own_usual(logits, module) > 0))


def own_usual(logits: torch.Tensor, module) -> torch.Tensor:
    """The distribution without further cuts."""
    return distribution(logits, Sampling(**{**own_sampling(module), "cuts": ()}))


def test_rules_that_leave_nothing_are_refused():
    module = tiny_hf_model("gpt2")
    module.generation_config = GenerationConfig(suppress_tokens=list(range(61)))
    with pytest.raises(UserError, match="forbid every token"):
        check_rules(language_model(module, None, "ruled", lean=False))


EVEN = [token for token in range(61) if token % 2 == 0]


class Even(Constraint):
    """A constraint that allows only even tokens."""

    def allowed(self, continuation):
        mask = torch.zeros(61, dtype=torch.bool)
        mask[EVEN] = True
        return mask

    def commit(self, tokens):
        self.committed += len(tokens)


BENEATH = ["no repeated pairs", "suppressed", "suppressed at the beginning", "bad words"]


@pytest.mark.parametrize("name", BENEATH)
def test_the_rules_hold_beneath_another_constraint(name):
    module = tiny_hf_model("gpt2", seed=2)
    module.generation_config = GenerationConfig(**RULES[name])
    written = generated(module, PROMPT, NEW, prefix_allowed_tokens_fn=lambda *_: EVEN)
    model = language_model(copy.deepcopy(module), None, "ruled", lean=False)
    for key in ("none", "chain"):
        request = replace(request_of(model, key), constraint=Even())
        found = text_of(run_loop(model, request))
        assert found == written
        free = replace(request_of(model, key), constraint=None)
        assert found != text_of(run_loop(model, free))


def test_where_both_leave_nothing_the_run_fails_and_rules_of_length_are_left_out():
    module = tiny_hf_model("gpt2", seed=2)
    module.generation_config = GenerationConfig(suppress_tokens=EVEN)
    model = language_model(copy.deepcopy(module), None, "ruled", lean=False)
    with pytest.raises(UserError, match="suppress_tokens or bad_words_ids"):
        list(run_loop(model, replace(request_of(model, "none"), constraint=Even())))
    module.generation_config = GenerationConfig(min_new_tokens=60, eos_token_id=EVEN)
    model = language_model(copy.deepcopy(module), None, "ruled", lean=False)
    steps = list(run_loop(model, replace(request_of(model, "none"), constraint=Even())))
    assert [step.stop for step in steps] == ["eos"], "the constraint decides where the text ends"


def test_they_are_said_when_a_checkpoint_is_opened(tmp_path, caplog, uncompiled):
    module = tiny_hf_model("gpt2")
    module.generation_config.repetition_penalty = 1.1
    module.save_pretrained(tmp_path)
    words = {f"w{place}": place for place in range(61)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w0"))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(tmp_path)
    with caplog.at_level(logging.WARNING, "engine"):
        load_language_model(str(tmp_path))
    assert "repetition_penalty = 1.1" in caplog.text
