"""Many texts at once are those that are written alone; conversations; the file of a target's answers."""

import itertools
import json

import pytest
import torch

from engine.core.sampling import Sampling, distribution
from engine.fast.gpu.slots import ROUND, Drawing, Slots
from engine.training import chat_text, selftext
from engine.training.__main__ import main
from engine.training.chat_text import Chat
from engine.training.conversations import SHARES, Conversation, conversations
from engine.training.conversations.material import Material
from engine.training.generators import is_held_out
from engine.training.tokenizer import END, with_chat
from tests.engine.tiny import VOCABULARY, generated, tiny_hf_model

PROMPTS = [
    [(7 * place + 3 * length) % VOCABULARY for place in range(length)] for length in (5, 1, 17, 9)
]


@pytest.mark.parametrize("architecture", ["llama", "qwen3"])
def test_texts_of_slots_are_those_written_alone(architecture):
    """Of different lengths, and with a text that takes the place of another one."""
    module = tiny_hf_model(architecture)
    expected = [generated(module, prompt, 2 * ROUND) for prompt in PROMPTS]
    slots = Slots(module, 3, 17 + 3 * ROUND)
    slots.begin([0, 2], PROMPTS[:2])
    first = slots.round()
    slots.begin([2, 1], PROMPTS[2:])
    second = slots.round()
    third = slots.round()
    assert first[0] + second[0] == expected[0]
    assert first[2] == expected[1][:ROUND]
    assert second[2] + third[2] == expected[2]
    assert second[1] + third[1] == expected[3]


def test_draws_follow_the_law():
    torch.manual_seed(0)
    logits = 2 * torch.randn(1, 12)
    drawing = Drawing(20_000, temperature=0.8, top_p=0.9)
    found = torch.bincount(drawing(logits.expand(20_000, -1)), minlength=12) / 20_000
    law = distribution(logits[0], Sampling(0.8, top_p=0.9))
    assert (law == 0).any() and not found[law == 0].any()
    assert (found - law).abs().max() < 0.02  # five deviations of a share of one half


def test_only_the_first_slots_draw():
    torch.manual_seed(0)
    found = Drawing(30)(torch.zeros(60, 40) + torch.arange(40) / 400)
    assert len(set(found[:30].tolist())) > 5 and set(found[30:].tolist()) == {39}


def test_conversations_are_many_and_repeatable():
    some = [*itertools.islice(conversations(Material(), 1), 600)]
    assert some == [*itertools.islice(conversations(Material(), 1), 600)]
    assert some != [*itertools.islice(conversations(Material(), 2), 600)]
    assert len({one.turns[0] for one in some}) == 600
    assert {one.kind for one in some} == {make.__name__ for make in SHARES}
    assert {len(one.turns) for one in some} == {1, 2} and any(one.system for one in some)
    assert not any(is_held_out(one.turns[0]) for one in some)
    held_out = itertools.islice(conversations(Material(), 1, held_out=True), 20)
    assert all(is_held_out(one.turns[0]) for one in held_out)


def test_requests_quote_the_corpora():
    story = "There was once a very old clock on a hill. " * 6
    texts = {
        "fable": [story],
        "gsm8k": ["Question: How many hens are 2 and 3 hens?\nAnswer: 5."],
        "mbpp": ["# Write a function to add 2 numbers.\ndef add(a, b):\n    return a + b"],
    }
    some = itertools.islice(conversations(Material.of(texts, Material().vocabulary), 0), 600)
    asked = "\n".join(one.turns[0] for one in some)
    for words in ("very old clock on a hill", "How many hens", "to add 2 numbers.", "return a + b"):
        assert words in asked
    assert "Answer: 5." not in asked


def test_a_second_turn_follows_the_answer(tokenizer):
    chatting = with_chat(tokenizer)
    end = chatting.convert_tokens_to_ids(END)
    chat = Chat(chatting, {end})
    text = chat.begin(Conversation("question", ("Hello?", "Why?"), "Be kind."), held_out=True)
    text.answer = [*chatting("Because.").input_ids, end]
    following = chat.after(text)
    assert chatting.decode(following.prompt) == (
        "<|system|>Be kind.<|end|><|user|>Hello?<|end|><|assistant|>Because.<|end|><|user|>Why?<|end|><|assistant|>"
    )
    assert following.held_out and following.later == () and chat.after(following) is None
    text.answer.pop()
    assert chat.after(text) is None, "the answer was cut"


def test_the_recipes(places, family, monkeypatch, capsys):
    monkeypatch.setattr(chat_text, "LONGEST_ANSWER", 20)
    monkeypatch.setattr(chat_text, "HELD_OUT", 3)
    folder, given = places
    named = ["--target", str(family / "models" / "target"), "--rows", "6", "--tokens", "300"]
    assert main(["chat-text", *given, *named]) == 2
    assert "run the recipe `conversations` first" in capsys.readouterr().err
    assert main(["conversations", *given, "--count", "40"]) == 0
    lines = (folder / "run" / chat_text.FILE).read_text("utf-8").splitlines()
    assert len(lines) == 40 and set(json.loads(lines[0])) == {"kind", "turns", "system"}
    assert main(["chat-text", *given, *named]) == 0
    (path,) = (folder / "run").glob("targets/*/selftext.npz")
    found, held_out = selftext.load(path), selftext.load(path.with_name("held-out.npz"))
    assert len(held_out.prompts) >= 3
    for each in (found, held_out):
        lengths = each.starts[1:] - each.starts[:-1]
        assert each.noisy.all() and (each.prompts < lengths).all()
        assert (lengths - each.prompts <= 20).all()
    written = sum(len(one.tokens) - one.prompts.sum() for one in (found, held_out))
    assert 300 <= written <= 300 + 6 * (ROUND + 20)


def test_a_target_without_a_template_is_refused(places, family, tmp_path, capsys):
    _, given = places
    bare = tmp_path / "bare"
    bare.mkdir()
    for file in (family / "models" / "target").iterdir():
        if "template" not in file.name:
            (bare / file.name).write_bytes(file.read_bytes())
    settings = bare / "tokenizer_config.json"
    content = json.loads(settings.read_text("utf-8"))
    content.pop("chat_template", None)
    settings.write_text(json.dumps(content))
    assert main(["chat-text", *given, "--target", str(bare)]) == 2
    assert "has no chat template" in capsys.readouterr().err
