"""Makes conversations for a chat model: only the user's turns. The target writes the answers later, and drafters learn
from these answers.

For every kind of request there is a function of a random generator and of the ``Material`` that the request may quote.
Whether a conversation is held out depends on a hash of its first request, as for the examples of the generators.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from engine.training.conversations import asking, telling, working
from engine.training.conversations.material import Material
from engine.training.corpus import holds_prompt
from engine.training.generators import is_held_out

SHARES: dict[Callable[[random.Random, Material], str], float] = {
    asking.question: 0.14,
    asking.explanation: 0.12,
    asking.comparison: 0.04,
    asking.listing: 0.07,
    asking.definition: 0.02,
    asking.opinion: 0.02,
    working.code: 0.09,
    working.program: 0.07,
    working.edit: 0.08,
    working.summary: 0.06,
    working.extraction: 0.04,
    working.translation: 0.03,
    working.arithmetic: 0.09,
    working.record: 0.09,
    working.items: 0.02,
    telling.story: 0.06,
    telling.poem: 0.02,
    telling.letter: 0.03,
    telling.dialogue: 0.01,
    telling.other: 0.04,
}
SYSTEMS = [
    "You are a helpful assistant.",
    "You are a helpful assistant who answers in one paragraph.",
    "You are a patient teacher.",
    "You are a concise assistant. Answer in as few words as possible.",
    "You are an expert programmer. Answer with code and short comments.",
    "You are a friendly guide for children. Use simple words.",
    "You answer in Markdown, with headings and lists.",
    "You are an editor who cares about clear language.",
    "You are a careful scientist. Say what is not known.",
    "You are a storyteller with a sense of humour.",
    "You always answer with valid JSON where that is possible.",
    "You are a travel agent.",
]
WITH_SYSTEM, WITH_SECOND_TURN = 0.15, 0.18
FOLLOW_UPS = [
    "Can you make that shorter?", "Explain that in simpler words.", "Give me an example.", "Why?", "Thank you! Now write it as a list.",
    "Now summarise your answer in one sentence.", "Can you say more about the second point?", "Are you sure? Check your answer.",
    "Rewrite your answer for a child.", "Write it again with a different ending.", "Now write it as a table.", "What should I do next?",
    "Repeat your answer and change nothing.", "Translate your answer into French.", "Thanks. What else should I know?",
    "Turn your answer into three questions.", "Now make it more formal.", "Add a title.", "What is the most important part of it?",
    "Can you give me the same in JSON, with the keys question and answer?", "Continue.", "Now do it in another way.",
]  # fmt: skip


@dataclass(frozen=True)
class Conversation:
    """The user's part of a conversation. kind: the name of the function that made the first request. turns: the texts
    of the user's turns; the target answers after each. system: the text of the system turn before all others; None:
    there is none."""

    kind: str
    turns: tuple[str, ...]
    system: str | None = None


def conversations(material: Material, seed: int, held_out: bool = False) -> Iterator[Conversation]:
    """An endless stream of different conversations, the same for the same seed. No first request contains a prompt
    that Draftscope ships. held_out: True: all of them are held out; False: none of them is."""
    rng = random.Random(f"conversations/{seed}/{held_out}")
    makers, weights = [*SHARES], [*SHARES.values()]
    seen: set[str] = set()
    while True:
        make = rng.choices(makers, weights)[0]
        request = make(rng, material)
        second = rng.choice(FOLLOW_UPS) if rng.random() < WITH_SECOND_TURN else None
        system = rng.choice(SYSTEMS) if rng.random() < WITH_SYSTEM else None
        if request in seen or is_held_out(request) != held_out or holds_prompt(request):
            continue
        seen.add(request)
        turns = (request,) if second is None else (request, second)
        yield Conversation(make.__name__, turns, system)
