"""Examples of chats: a short instruction in the chat template, sometimes with a system turn before it or a follow-up
turn."""

from __future__ import annotations

import random

from engine.training.generators.chat_tasks import TASKS, WEIGHTS, one_sentence
from engine.training.generators.words import Vocabulary
from engine.training.tokenizer import render

SYSTEMS = [
    "You are a kind storyteller.",
    "You are a helpful assistant.",
    "You are a small model that writes simple English.",
    "Use simple words.",
    "Be kind and clear.",
]
THANKS = ["Thank you!", "Thanks.", "Thank you very much.", "Good, thank you."]
WELCOMES = ["You are welcome!", "You are welcome. What is next?", "I am happy to help."]


def make(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    """A chat, as (the text up to the assistant's last turn, the text of that turn with its end token)."""
    turns: list[tuple[str, str]] = []
    if vocabulary.sentences and rng.random() < 0.06:
        turns = [("system", "Answer in one sentence."), *one_sentence(rng, vocabulary)]
    else:
        if rng.random() < 0.25:
            turns.append(("system", rng.choice(SYSTEMS)))
        for _ in range(rng.choices([1, 2], [5, 1])[0]):
            turns += rng.choices(TASKS, WEIGHTS)[0](rng, vocabulary)
        if rng.random() < 0.04:
            turns += [("user", rng.choice(THANKS)), ("assistant", rng.choice(WELCOMES))]
    messages = [{"role": role, "content": content} for role, content in turns]
    whole = render(messages)
    prompt = render(messages[:-1], add_generation_prompt=True)
    return prompt, whole.removeprefix(prompt)
