"""Makes long prompts of four kinds. The same size gives the same prompts.

``needle``: a question about one sentence in the middle of many stories. ``question``: a question about one of many
stories, which is named by its teller. ``list``: a list of orders that the answer continues. ``summary``: a request for
a summary of the stories. A small target that was not trained to answer questions gets tasks of the forms that it was
trained on instead; the text that the answer needs is at the same position of the prompt.
"""

import random
from collections.abc import Callable, Iterator

from engine.training.generators.edits import change
from engine.training.generators.records import json_lines
from engine.training.generators.words import (
    CITIES,
    COLOURS,
    JOBS,
    NAMES,
    THINGS,
    Vocabulary,
    paragraph,
)

KINDS = ("needle", "question", "list", "summary")
MIDDLE = ("needle", "question")
"""The kinds of prompts that hold the text that the answer needs in their middle."""
WORDS = Vocabulary()

Count = Callable[[str], int]


def long_prompts(tokens: int, count: Count, asked: bool) -> dict[str, str]:
    """A prompt of each kind, by kind, with at most ``tokens`` tokens. count(text): the number of tokens in a text.
    asked: whether the target answers questions."""
    makers = (
        {"needle": _needle, "question": _question, "list": _orders, "summary": _summary}
        if asked
        else {"needle": _edited, "question": _edited_again, "list": _records, "summary": _story}
    )
    return {kind: _longest(kind, makers[kind], tokens, count) for kind in KINDS}


def _longest(kind: str, make: Callable, tokens: int, count: Count) -> str:
    """The longest prompt of at most ``tokens`` tokens. make: a function from a random generator and the number of parts
    (stories, orders, edits or records) to a prompt of that many parts."""
    low, high = 2, 4
    while count(make(random.Random(kind), high)) <= tokens:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        fits = count(make(random.Random(kind), middle)) <= tokens
        low, high = (middle, high) if fits else (low, middle)
    return make(random.Random(kind), low)


def _stories(rng: random.Random) -> Iterator[tuple[str, str]]:
    """Endless pairs of a teller and the teller's story. No two stories have the same teller."""
    for number in range(1, 1_000_000):
        teller = f"{rng.choice(NAMES)} the {rng.choice(JOBS)} of {rng.choice(CITIES)}"
        yield f"{teller}, number {number}", paragraph(rng, WORDS, 5, 7)


def _told(rng: random.Random, parts: int) -> list[tuple[str, str]]:
    return [story for _, story in zip(range(parts), _stories(rng), strict=False)]


def _joined(stories: list[tuple[str, str]]) -> str:
    return "\n\n".join(f"{teller}, tells: {text}" for teller, text in stories)


def _needle(rng: random.Random, parts: int) -> str:
    stories = _told(rng, parts)
    teller, text = stories[parts // 2]
    secret = (
        "The key of the old tower lies under the third stone of the bridge, beside a blue bottle and a small brass bell, "
        "and whoever finds it must carry it to the baker before the sun goes down behind the hill."
    )
    stories[parts // 2] = teller, f"{secret} {text}"
    return (
        f"{_joined(stories)}\n\nWhere does the key of the old tower lie? Repeat the whole sentence about it, word for word, "
        "and the sentences of the story that follow it."
    )


def _question(rng: random.Random, parts: int) -> str:
    stories = _told(rng, parts)
    teller, _ = stories[parts // 2]
    return f"{_joined(stories)}\n\nWhat does {teller}, tell? Write that whole story once more, word for word."


def _summary(rng: random.Random, parts: int) -> str:
    return f"{_joined(_told(rng, parts))}\n\nWrite a summary of these stories: who did what, and where."


def _order(rng: random.Random, number: int) -> str:
    return (
        f"Order {number}: {rng.choice(NAMES)} from {rng.choice(CITIES)} bought {rng.randint(2, 90)} "
        f"{rng.choice(COLOURS)} {rng.choice(THINGS)}s for {rng.randint(3, 99)} coins.\n"
    )


def _orders(rng: random.Random, parts: int) -> str:
    lines = [_order(rng, number) for number in range(1, parts + 1)]
    return f"Go on with this list of orders, in the same form.\n\n{''.join(lines)}"


def _edits(rng: random.Random, parts: int) -> tuple[str, str, str]:
    """Three texts: ``parts`` finished tasks of editing a text, joined; the text that the task in the middle edits; and
    the edited text that is its answer."""
    tasks = [change(rng, WORDS) for _ in range(parts)]
    prompt, answer = tasks[parts // 2]
    text = prompt.partition("\nText: ")[2].removesuffix("\nOutput:")
    return "\n\n".join(map("".join, tasks)), text, answer


def _edited(rng: random.Random, parts: int) -> str:
    """Finished tasks of editing a text, and then an unfinished task. Its text is cut off after the first words of the
    text that the task in the middle edits, so that the answer copies the rest of that text."""
    done, text, _ = _edits(rng, parts)
    return f"{done}\n\nEdit: change big to small.\nText: {' '.join(text.split()[:8])}"


def _edited_again(rng: random.Random, parts: int) -> str:
    """Finished tasks of editing a text, and then a task without its answer, which asks for one more change of the text
    that the task in the middle has edited."""
    done, _, answer = _edits(rng, parts)
    word = rng.choice([word for word in answer.split() if word.isalpha()])
    return f"{done}\n\nEdit: change {word} to {rng.choice(THINGS)}.\nText:{answer}\nOutput:"


def _records(rng: random.Random, parts: int) -> str:
    """Finished lists of records, and a last list that has only its first two records."""
    lists = [json_lines(rng, WORDS) for _ in range(parts)]
    task, lines = json_lines(rng, WORDS)
    done = "\n\n".join(map("".join, lists))
    first = "\n".join(lines.splitlines()[:2])
    return f"{done}\n\n{task}{first}\n"


def _story(rng: random.Random, parts: int) -> str:
    return " ".join(text for _, text in _told(rng, parts))
