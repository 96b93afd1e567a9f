"""The chat voice: the template renders and reads back, and the answers are right."""

from __future__ import annotations

import itertools
import re

import pytest

from engine.training.checkpoint import export_model, export_tokenizer
from engine.training.generators import examples
from engine.training.generators.words import Vocabulary
from engine.training.new_models import target_config
from engine.training.tokenizer import CHAT_TOKENS, load_tokenizer, render, with_chat

MESSAGES = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "What is 3 + 4?"},
    {"role": "assistant", "content": "3 + 4 = 7."},
    {"role": "user", "content": "Sort: b, a."},
]


@pytest.fixture(scope="module")
def chatting(tokenizer):
    return with_chat(tokenizer)


def test_all_other_entries_keep_their_ids(tokenizer, chatting):
    assert len(chatting) == len(tokenizer)
    before, after = tokenizer.get_vocab(), chatting.get_vocab()
    changed = {name for name in before if after.get(name) != before[name]}
    assert len(changed) == len(CHAT_TOKENS) and set(CHAT_TOKENS) <= set(after)
    text = "A dog and 12 cats.\n\n    def f(x):"
    assert chatting.decode(chatting(text).input_ids) == text


def test_the_template_renders_and_reads_back(chatting, tmp_path):
    export_tokenizer(chatting, tmp_path)
    again = load_tokenizer(tmp_path)
    text = again.apply_chat_template(MESSAGES, add_generation_prompt=True, tokenize=False)
    assert text == render(MESSAGES, add_generation_prompt=True)
    ids = again(text).input_ids
    assert again.decode(ids) == text
    assert sum(i in again.convert_tokens_to_ids(CHAT_TOKENS) for i in ids) == 9
    turns = re.findall(r"<\|(\w+)\|>(.*?)<\|end\|>", text)
    assert turns == [(m["role"], m["content"]) for m in MESSAGES]


def test_the_end_of_a_turn_ends_a_text(chatting, tmp_path):
    from transformers import GenerationConfig, LlamaForCausalLM

    small = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 1}
    shape = {**small, "num_key_value_heads": 1, "head_dim": 16}
    model = LlamaForCausalLM(target_config(len(chatting), chatting.eos_token_id, 1, **shape))
    export_model(model, tmp_path, chatting)
    ends = GenerationConfig.from_pretrained(tmp_path).eos_token_id
    assert ends == [chatting.eos_token_id, chatting.convert_tokens_to_ids("<|end|>")]


def test_chats_are_well_formed():
    for example in itertools.islice(examples("chat", 3, Vocabulary()), 300):
        assert example.prompt.endswith("<|assistant|>") and example.answer.endswith("<|end|>")
        roles = re.findall(r"<\|(system|user|assistant)\|>", example.text)
        if roles[0] == "system":
            roles.pop(0)
        assert roles == ["user", "assistant"] * (len(roles) // 2)


def test_lists_of_chats_are_right():
    checked = 0
    for example in itertools.islice(examples("chat", 4, Vocabulary()), 600):
        turns = re.findall(
            r"<\|user\|>([^<]*)<\|end\|><\|assistant\|>([^<]*)<\|end\|>", example.text
        )
        for asked, answer in turns:
            if match := re.match(r"(Sort|Reverse|Shuffle)(?: this list| these)?: (.*)\.$", asked):
                given, said = match[2].split(", "), answer.split(", ")
                key = int if given[0].isdigit() else str.lower
                wanted = {"Sort": sorted(given, key=key), "Reverse": given[::-1]}
                assert said == wanted.get(match[1], said) and sorted(said) == sorted(given)
                checked += 1
    assert checked > 50
