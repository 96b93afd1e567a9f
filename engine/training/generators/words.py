"""The small English vocabulary of the generators, sentences made from it, and the rule that decides which prompts are
held out."""

from __future__ import annotations

import random
import zlib
from dataclasses import dataclass, field


def _words(text: str) -> list[str]:
    return text.split()


NAMES = _words("""
    Tom Mia Ben Lily Sam Anna Max Lucy Tim Sara Jack Emma Leo Zoe Finn Nora Paul Ella
    Adam Ruth Omar Ivy Hugo Maya Noah Rosa Eric Jane Luis Kate Amir Nina Oscar Alice
    Peter Clara Dan Sue Bob Amy
""")
ANIMALS = _words("""
    cat dog bird fish fox bear frog duck horse cow pig sheep mouse rabbit lion tiger
    monkey goat hen owl bee ant turtle snake deer wolf elephant crab
""")
THINGS = _words("""
    ball car book hat box cup tree flower apple key door lamp chair table spoon bag boat
    kite drum bell coat shoe stone leaf star cake cookie pear letter clock blanket
    bottle bucket basket ribbon pencil brush rope wheel
""")
FOODS = _words("""
    apple pear plum cake bread soup milk rice cheese honey berry carrot banana egg
    cookie pie corn bean
""")
COLOURS = _words("""
    red blue green yellow black white brown pink orange purple grey gold
""")
ADJECTIVES = _words("""
    big small old new happy sad soft warm cold shiny quiet loud round tall kind brave
    funny little pretty wet dry clean heavy light sweet fast slow good nice silly
""")
VERBS = _words("""
    found saw made took liked wanted lost carried opened painted cleaned washed kept
    dropped moved hid shared bought gave watched
""")
PLACES = _words("""
    park garden house school farm forest kitchen river beach market room barn street
    hill lake shop library tower bridge field
""")
CITIES = _words("""
    Paris Rome London Berlin Madrid Oslo Cairo Lima Delhi Tokyo Dublin Vienna Athens
    Prague Boston Quito
""")
WHEN = [
    "One day",
    "In the morning",
    "After lunch",
    "Last night",
    "On Monday",
    "At noon",
    "Yesterday",
    "In winter",
]
JOBS = _words("""
    baker farmer teacher doctor painter driver cook sailor nurse builder singer gardener
""")
DRINKS = _words("water milk tea juice lemonade cocoa")
MONTHS = _words("""
    January February March April May June July August September October November December
""")
DAYS = _words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
WORDS = sorted({*ANIMALS, *THINGS, *FOODS, *COLOURS, *ADJECTIVES, *VERBS, *PLACES})


@dataclass(frozen=True)
class Vocabulary:
    """The words, sentences and stories from which generators draw. By default the built-in words;
    ``corpus.make_vocabulary`` takes more from the corpora."""

    words: list[str] = field(default_factory=lambda: WORDS)
    sentences: list[str] = field(default_factory=list)
    stories: list[str] = field(default_factory=list)  # short stories for the examples of chats


def with_article(word: str) -> str:
    """The word with its indefinite article, "old" -> "an old"."""
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"


def sentence(rng: random.Random, vocabulary: Vocabulary) -> str:
    """A random sentence made from a template. If the vocabulary has sentences, one of these is returned half of the
    time instead."""
    if vocabulary.sentences and rng.random() < 0.5:
        return rng.choice(vocabulary.sentences)
    name, other = rng.sample(NAMES, 2)
    adjective, thing, place, verb = (rng.choice(x) for x in (ADJECTIVES, THINGS, PLACES, VERBS))
    animal, colour, when = rng.choice(ANIMALS), rng.choice(COLOURS), rng.choice(WHEN)
    return rng.choice(
        [
            f"{when}, {name} {verb} {with_article(adjective)} {thing} in the {place}.",
            f"The {colour} {animal} sat on the {thing} near the {place}.",
            f"{name} and {other} {verb} the {adjective} {animal}.",
            f"{name} {verb} the {colour} {thing}, and {other} {verb} the {adjective} {rng.choice(THINGS)}.",
            f"The {adjective} {animal} ran from the {place} to the {rng.choice(PLACES)}.",
            f'"Where is my {colour} {thing}?" said {name}.',
            f"There was {with_article(adjective)} {animal} who lived in the {place}.",
            f"{name} put the {thing} in the {rng.choice(THINGS)} and went to the {place}.",
            f"{when}, the {animal} and the {rng.choice(ANIMALS)} went to the {place} with {name}.",
        ]
    )


def paragraph(rng: random.Random, vocabulary: Vocabulary, low: int, high: int) -> str:
    return " ".join(sentence(rng, vocabulary) for _ in range(rng.randint(low, high)))


def word_list(rng: random.Random, vocabulary: Vocabulary, count: int) -> list[str]:
    """Up to ``count`` different words, all drawn from one source: words of one kind, words of all kinds, or the whole
    vocabulary. Lists of unrelated words teach copying itself."""
    pool = rng.choice(
        [ANIMALS, THINGS, FOODS, COLOURS, NAMES, WORDS, vocabulary.words, vocabulary.words]
    )
    return rng.sample(pool, min(count, len(pool)))


HELD_OUT_ONE_IN = 40


def is_held_out(prompt: str) -> bool:
    """Whether a prompt is held out from training. A hash of the prompt decides this, so no list is needed."""
    return zlib.crc32(prompt.strip().encode()) % HELD_OUT_ONE_IN == 0
