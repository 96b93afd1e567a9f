"""Requests for invented texts: stories, poems, letters, dialogues, speeches."""

from __future__ import annotations

import random

from engine.training.conversations.material import Material
from engine.training.conversations.topics import (
    ANIMALS,
    EVENTS,
    FIRST_NAMES,
    HEROES,
    ITEMS,
    JOBS,
    PLACES,
    SETTINGS,
    SUBJECTS,
)

STORIES = [
    "Write a short story about {hero} who {event} {place}.",
    "Tell me a story about {hero} {place}.",
    "Write a story in which {hero} {event}.",
    "Write a bedtime story about {hero}.",
    "Write the beginning of a novel: {hero} {event} {place}.",
    "Write a funny story about {hero} who {event}.",
    "Write a story of 100 words about {hero}.",
    "Write a scary story that takes place {place}.",
    "Tell a story with a surprising end about {hero} who {event}.",
]
POEMS = [
    "Write a poem about {}.", "Write a haiku about {}.", "Write a limerick about {}.", "Write a short song about {}.",
    "Write four rhyming lines about {}.", "Write a poem of two stanzas about {}.",
]  # fmt: skip
WISHES = [
    "to thank them for their help", "to apologise for being late", "to ask for a day off", "to invite them to a dinner",
    "to cancel a meeting on Monday", "to ask about a delayed parcel", "to congratulate them on a new job", "to complain about a broken {item}",
    "to ask for a recommendation", "to say goodbye after five years of work", "to remind them of a deadline", "to introduce myself as {job}",
    "to offer them a used {item}", "to ask for directions to the station",
]  # fmt: skip
RECEIVERS = [
    "my boss",
    "a friend",
    "my landlord",
    "a customer",
    "my teacher",
    "a colleague",
    "the city council",
    "a neighbour",
]
DIALOGUES = [
    "Write a dialogue between {a} and {b} about {topic}.",
    "Write a conversation in which {a} asks {b} for advice about {topic}.",
    "Write a short play with {a} and {b}.",
    "Write an interview with {a}.",
]
OTHERS = [
    "Write a short speech about {topic}.",
    "Write an advertisement for a {item}.",
    "Write a product description for a {item}.",
    "Write a review of a {item} that I liked.",
    "Write a diary entry of {job} after a long day.",
    "Write a blog post about {topic}.",
    "Write a news report about {topic}.",
    "Write a postcard from {town}.",
    "Write a recipe for a meal that one eats in {town}.",
    "Write an essay of three paragraphs about {topic}.",
    "Write a riddle about {animals}.",
    "Tell me a joke about {animals}.",
    "Invent a name and a slogan for a company that sells a {item}.",
    "Write a tweet about {topic}.",
    "Describe a picture that shows {animals} {place}.",
]


def story(rng: random.Random, material: Material) -> str:
    form = rng.choice(STORIES)
    return form.format(
        hero=rng.choice(HEROES), event=rng.choice(EVENTS), place=rng.choice(SETTINGS)
    )


def poem(rng: random.Random, material: Material) -> str:
    return rng.choice(POEMS).format(rng.choice([*SUBJECTS, *HEROES, *SETTINGS]).removeprefix("in "))


def letter(rng: random.Random, material: Material) -> str:
    wish = rng.choice(WISHES).format(item=rng.choice(ITEMS), job=rng.choice(JOBS))
    what, name = rng.choice(["an email", "a letter", "a short message"]), rng.choice(FIRST_NAMES)
    signed = rng.choice(
        ["", "", f" Sign it as {name}.", " Keep it polite.", " Use at most five sentences."]
    )
    return f"Write {what} to {rng.choice(RECEIVERS)} {wish}.{signed}"


def dialogue(rng: random.Random, material: Material) -> str:
    a, b = rng.sample([*JOBS, *HEROES], 2)
    return rng.choice(DIALOGUES).format(a=a, b=b, topic=rng.choice(SUBJECTS))


def other(rng: random.Random, material: Material) -> str:
    return rng.choice(OTHERS).format(
        topic=rng.choice(SUBJECTS),
        item=rng.choice(ITEMS),
        job=rng.choice(JOBS),
        town=rng.choice(PLACES),
        animals=rng.choice(ANIMALS),
        place=rng.choice(SETTINGS),
    )
