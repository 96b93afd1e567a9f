"""Tokens that a checkpoint forbids or forces: texts equal those of ``generate`` with the same configuration."""

import copy
import logging
from dataclasses import replace

import pytest
import torch
from tokenizers import Tokenizer, models
from transformers import GenerationConfig, PreTrainedTokenizerFast

from engine.batch.together import decode_together
from engine.checkpoint_rules import unapplied
from engine.constraint import Constraint
from engine.drafters import drafter
from engine.errors import UserError
from engine.loops import run_loop
from engine.opening import language_model, load_language_model
from engine.options import resolve
from engine.parts.loading import Models
from engine.sampling import Sampling
from engine.text import TextRequest
from engine.verifiers import verifier
from tests.engine.tiny import tiny_hf_model

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


def pair(rules: dict):
    """(generate's text without the rules, its text with them, the model)"""
    module = tiny_hf_model("gpt2", seed=2)
    ids = torch.tensor([PROMPT])

    def written(**given) -> list[int]:
        module.generation_config = GenerationConfig(**given)
        found = module.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=NEW
        )
        return found[0, len(PROMPT) :].tolist()

    ends = {"eos_token_id": rules["eos_token_id"]} if "eos_token_id" in rules else {}
    without, expected = written(**ends), written(**rules)
    return without, expected, language_model(copy.deepcopy(module), None, "ruled", lean=False)


def request_of(model, key: str) -> TextRequest:
    cls = drafter(key)
    chosen = {"budget": 6} if key == "dyspec" else {}
    built = cls.build(resolve(key, cls.options, chosen), Models(model, {"draft": model}))
    return TextRequest(built, verifier("greedy"), Sampling(), PROMPT, NEW)


@pytest.mark.parametrize("key", ["none", "prompt_lookup", "dyspec"])
@pytest.mark.parametrize("name", RULES)
def test_texts_follow_the_rules(name, key):
    without, expected, model = pair(RULES[name])
    assert without != expected, "this rule would not be noticed"
    found = [token for step in run_loop(model, request_of(model, key)) for token in step.output]
    assert found == expected


def test_texts_that_share_passes_follow_them_each():
    _, expected, model = pair(RULES["forced end"])
    texts: dict[int, list[int]] = {0: [], 1: []}
    requests = [request_of(model, "none"), request_of(model, "prompt_lookup")]
    for index, step in decode_together(model, requests):
        texts[index] += step.output
    assert texts == {0: expected, 1: expected}


EVEN = [token for token in range(61) if token % 2 == 0]


class Even(Constraint):
    """Only even tokens, as a schema allows only some."""

    def allowed(self, continuation):
        mask = torch.zeros(61, dtype=torch.bool)
        mask[EVEN] = True
        return mask

    def commit(self, tokens):
        self.committed += len(tokens)


BENEATH = ["no repeated pairs", "suppressed", "suppressed at the beginning", "bad words"]


@pytest.mark.parametrize("key", ["none", "chain"])
@pytest.mark.parametrize("name", BENEATH)
def test_the_rules_hold_beneath_another_constraint(name, key):
    module = tiny_hf_model("gpt2", seed=2)
    module.generation_config = GenerationConfig(**RULES[name])
    ids = torch.tensor([PROMPT])
    written = module.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        do_sample=False,
        max_new_tokens=NEW,
        prefix_allowed_tokens_fn=lambda *_: EVEN,
    )
    model = language_model(copy.deepcopy(module), None, "ruled", lean=False)
    request = replace(request_of(model, key), constraint=Even())
    found = [token for step in run_loop(model, request) for token in step.output]
    assert found == written[0, len(PROMPT) :].tolist()
    free = replace(request_of(model, key), constraint=None)
    assert found != [token for step in run_loop(model, free) for token in step.output]


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


def test_rules_that_change_numbers_are_named():
    assert not unapplied(GenerationConfig())
    assert not unapplied(GenerationConfig(repetition_penalty=1.0, temperature=0.7, top_k=20))
    assert unapplied(GenerationConfig(repetition_penalty=1.1)) == ["repetition_penalty = 1.1"]


def test_they_are_said_when_a_checkpoint_is_opened(tmp_path, caplog):
    module = tiny_hf_model("gpt2")
    module.generation_config.repetition_penalty = 1.1
    module.save_pretrained(tmp_path)
    words = {f"w{place}": place for place in range(61)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w0"))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(tmp_path)
    with caplog.at_level(logging.WARNING, "engine"):
        load_language_model(str(tmp_path))
    assert "repetition_penalty = 1.1" in caplog.text
