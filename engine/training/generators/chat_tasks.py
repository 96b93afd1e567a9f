"""The tasks of chats. Each function makes the turns of a task, as (role, content); the last turn is the assistant's."""

from __future__ import annotations

import random
import re

from engine.training.generators import code, edits, records
from engine.training.generators.arithmetic import easy_sum, large_sum
from engine.training.generators.arithmetic import story as word_problem
from engine.training.generators.column_sums import worked
from engine.training.generators.words import (
    ADJECTIVES,
    ANIMALS,
    CITIES,
    COLOURS,
    FOODS,
    NAMES,
    PLACES,
    THINGS,
    Vocabulary,
    is_held_out,
    paragraph,
    with_article,
    word_list,
)

Turns = list[tuple[str, str]]
KNOWN = {word for words in (ANIMALS, THINGS, FOODS, PLACES, NAMES) for word in words}
SUBJECTS = {word for words in (ANIMALS, THINGS, FOODS, PLACES) for word in words}


def _exchange(question: str, answer: str) -> Turns:
    return [("user", question), ("assistant", answer)]


def _named(word: str) -> str:
    """The word with an article, "dog" -> "a dog"; a capitalised word stays as it is, "Tom" -> "Tom"."""
    return word if word[0].isupper() else with_article(word)


def _subjects(text: str) -> list[str]:
    """The different words of ``KNOWN`` in the first 250 characters of the text, in the order in which they occur."""
    return list(dict.fromkeys(w for w in re.findall(r"\w+", text[:250]) if w in KNOWN))


def story(rng: random.Random, vocabulary: Vocabulary) -> Turns:
    """A request for a story about one or two words, with a story of the corpus whose beginning has these words."""
    while True:
        text = (
            rng.choice(vocabulary.stories)
            if vocabulary.stories
            else paragraph(rng, vocabulary, 3, 5)
        )
        subjects = _subjects(text)
        if subjects:
            break
    about = [
        _named(word) for word in rng.sample(subjects, min(len(subjects), rng.choice([1, 1, 2])))
    ]
    request = rng.choice(
        [
            "Tell a story about {}.",
            "Tell me a story about {}.",
            "Write a story about {}.",
            "Write a short story about {}.",
            "Can you tell a story about {}?",
            "Please tell me a story about {}.",
            "I want to hear a story about {}.",
        ]
    )
    return _exchange(request.format(" and ".join(about)), text)


def one_sentence(rng: random.Random, vocabulary: Vocabulary) -> Turns:
    """A request with an answer of one sentence, for chats whose system turn allows only one sentence."""
    if rng.random() < 0.3:
        return _exchange(*_sum_question(rng, easy_sum(rng)))
    while True:
        text = rng.choice(vocabulary.sentences)
        subjects = [w for w in re.findall(r"\w+", text) if w in SUBJECTS]
        if subjects:
            return _exchange(f"Tell me about {_named(rng.choice(subjects))}.", text)


def _sum_question(rng: random.Random, terms: tuple[int, str, int]) -> tuple[str, str]:
    a, operator, b = terms
    request = rng.choice(["What is {}?", "How much is {}?", "Please compute {}.", "{} = ?"])
    return request.format(f"{a} {operator} {b}"), f"{worked(a, operator, b)}."


def sums(rng: random.Random, vocabulary: Vocabulary) -> Turns:
    turns: Turns = []
    for _ in range(rng.choices([1, 2, 3], [4, 1, 1])[0]):
        terms = easy_sum(rng) if rng.random() < 0.4 else large_sum(rng)
        turns += _exchange(*_sum_question(rng, terms))
    return turns


def problem(rng: random.Random, vocabulary: Vocabulary) -> Turns:
    question, answer = word_problem(rng, vocabulary)
    request = question.removeprefix("Question: ").removesuffix("\nAnswer:")
    return _exchange(request, answer.strip())


def lists(rng: random.Random, vocabulary: Vocabulary) -> Turns:
    """A request to sort, reverse or shuffle a list, or to remove or replace one of its items. Sometimes a second
    request changes the answer again."""
    numbers = rng.random() < 0.3
    count = rng.randint(2, 9)
    items = (
        list(dict.fromkeys(str(rng.randint(0, 99)) for _ in range(count)))
        if numbers
        else word_list(rng, vocabulary, count)
    )
    kind = rng.choices(
        ["Sort", "Reverse", "Shuffle", "Remove", "Replace", "Copy"], [4, 2, 1, 2, 2, 1]
    )[0]
    turns = _exchange(*_on_list(rng, vocabulary, kind, items))
    if rng.random() < 0.2:
        items = turns[-1][1].split(", ")
        again = rng.choice(["Sort", "Reverse"])
        words = {
            "Sort": ["Now sort them.", "Sort it."],
            "Reverse": ["Now reverse it.", "And in reverse?"],
        }
        turns += _exchange(rng.choice(words[again]), ", ".join(_changed(again, items)))
    return turns


def _changed(kind: str, items: list[str]) -> list[str]:
    if kind == "Sort":
        return sorted(items, key=int if all(i.isdigit() for i in items) else str.lower)
    return items[::-1] if kind == "Reverse" else items


def _on_list(
    rng: random.Random, vocabulary: Vocabulary, kind: str, items: list[str]
) -> tuple[str, str]:
    listed, old, new = ", ".join(items), rng.choice(items), rng.choice(vocabulary.words)
    what = rng.choice(["", " this list", " these"]) if kind != "Copy" else rng.choice(["", " this"])
    if kind == "Remove":
        left = [item for item in items if item != old] or items
        return f"Remove {old} from {listed}.", ", ".join(left)
    if kind == "Replace":
        return (
            f"Replace {old} with {new} in {listed}.",
            ", ".join(new if item == old else item for item in items),
        )
    changed = rng.sample(items, len(items)) if kind == "Shuffle" else _changed(kind, items)
    return f"{kind}{what}: {listed}.", ", ".join(changed)


def edit(rng: random.Random, vocabulary: Vocabulary) -> Turns:
    prompt, answer = edits.change(rng, vocabulary)
    order, text = prompt.removeprefix("Edit: ").removesuffix("\nOutput:").split("\nText: ")
    request = rng.choice(["{o} {t}", "{o}\n{t}"])
    return _exchange(request.format(o=f"{order[0].upper()}{order[1:-1]}:", t=text), answer.strip())


def copy(rng: random.Random, vocabulary: Vocabulary) -> Turns:
    text = paragraph(rng, vocabulary, 1, 3)
    return _exchange(
        rng.choice(["Copy this: {}", "Say this again: {}", "Repeat: {}"]).format(text), text
    )


def record(rng: random.Random, vocabulary: Vocabulary) -> Turns:
    """A request for a record, table, form or letter, as the generator ``records`` makes it, in that generator's
    wording or similar words."""
    prompt, answer = rng.choice(
        [records.json_lines, records.json_lines, records.table, records.form, records.letter]
    )(rng, vocabulary)
    request = re.sub(r"^Write (\d+) JSON records with id, ", r"Write \1 records with id, ", prompt)
    return _exchange(request.strip().removesuffix(".") + ".", answer)


def function(rng: random.Random, vocabulary: Vocabulary) -> Turns:
    while True:
        prompt, body = code.make(rng, vocabulary)
        head = prompt.rsplit("\n\n\n", 1)[-1]
        if not is_held_out(head):
            break
    comment, signature = head.removeprefix("# ").split("\n", 1)
    request = rng.choice(["Write a Python function. {}", "Write a function. {}", "Python: {}"])
    return _exchange(request.format(comment), f"{signature}{body}")


def name_some(rng: random.Random, vocabulary: Vocabulary) -> Turns:
    kinds = {
        "animals": ANIMALS,
        "things": THINGS,
        "foods": FOODS,
        "colours": COLOURS,
        "names": NAMES,
    }
    kind = rng.choice([*kinds, "cities", "places"])
    words = {**kinds, "cities": CITIES, "places": PLACES}[kind]
    number = rng.randint(2, 6)
    said = ["two", "three", "four", "five", "six"][number - 2]
    shown = rng.choice([said, str(number)])
    return _exchange(f"Name {shown} {kind}.", ", ".join(rng.sample(words, number)))


def small_talk(rng: random.Random, vocabulary: Vocabulary) -> Turns:
    able = "I can tell stories, work out sums, change texts, sort lists and write small functions."
    greeting = rng.choice(["Hello! What shall we do?", "Hello! How can I help?"])
    pairs = {
        "Hello!": greeting,
        "Hi!": greeting,
        "Good morning.": "Good morning! How can I help?",
        "Who are you?": f"I am a small language model. {able}",
        "What can you do?": able,
        "How are you?": f"I am well, thank you. {rng.choice(['And you?', 'What shall we do?'])}",
        f"My name is {(name := rng.choice(NAMES))}.": f"Hello, {name}! How can I help?",
        f"I have a {(adjective := rng.choice(ADJECTIVES))} {(animal := rng.choice(ANIMALS))}.": (
            f"That is nice. Shall I tell a story about {_named(adjective)} {animal}?"
        ),
    }
    request = rng.choice(sorted(pairs))
    return _exchange(request, pairs[request])


TASKS = [story, sums, problem, lists, edit, copy, record, function, name_some, small_talk]
WEIGHTS = [5, 6, 2, 7, 4, 2, 2, 2, 1, 1]
