"""Makes questions about long pages whose answers can be checked. The same size gives the same page.

``needle``: the questions are about special sentences, spread over a page of other sentences, after RULER: Hsieh et al.,
What's the Real Context Size of Your Long-Context Language Models? (COLM 2024). ``paragraph``: the page has ten stories,
each with another hero who has another wish, and the questions are about the wishes.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

from engine.training.generators.words import JOBS, Vocabulary, sentence

KINDS = ("needle", "paragraph")
NEEDLES = (
    ("The key of the old tower lies under the third stone.", "Where does the key of the old tower lie?", "third stone"),
    ("The captain's ship is called the Silver Swan.", "What is the captain's ship called?", "Silver Swan"),
    ("The king's favourite soup is made of pumpkin.", "What is the king's favourite soup made of?", "pumpkin"),
    ("The password of the library is thunderbird.", "What is the password of the library?", "thunderbird"),
    ("The clockmaker of the village was born in Iceland.", "Where was the clockmaker of the village born?", "Iceland"),
    ("The treasure of the pirates is buried behind the windmill.", "Where is the treasure of the pirates buried?", "windmill"),
    ("The youngest princess plays the violin.", "Which instrument does the youngest princess play?", "violin"),
    ("The train to the mountains leaves at half past seven.", "When does the train to the mountains leave?", "half past seven"),
    ("The medicine for the dragon costs forty silver coins.", "How much does the medicine for the dragon cost?", "forty"),
    ("The wizard's cat is afraid of umbrellas.", "What is the wizard's cat afraid of?", "umbrella"),
)  # fmt: skip
WISHES = (
    "telescope", "piano", "submarine", "rainbow", "skateboard", "camera", "parrot", "volcano", "trumpet", "castle"
)  # fmt: skip
WORDS = Vocabulary()

Count = Callable[[str], int]


@dataclass(frozen=True)
class Page:
    """A long page with questions. kind: one of KINDS. text: the page, without a question. asked: pairs of a question
    and the words that a right answer contains."""

    kind: str
    text: str
    asked: tuple[tuple[str, str], ...]


def pages(tokens: int, count: Count) -> list[Page]:
    """A page of each kind. A page and its longest question have at most ``tokens`` tokens. count(text): the number of
    tokens in a text."""
    return [_longest(make, tokens, count) for make in (_needles, _stories)]


def _longest(make: Callable[[int], Page], tokens: int, count: Count) -> Page:
    """The longest page that has at most ``tokens`` tokens together with the longest of its questions."""

    def fits(sentences: int) -> bool:
        page = make(sentences)
        return count(page.text + max((question for question, _ in page.asked), key=len)) <= tokens

    low, high = len(NEEDLES), 2 * len(NEEDLES)
    while fits(high):
        low, high = high, 2 * high
    while high - low > len(NEEDLES):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return make(low)


def _needles(sentences: int) -> Page:
    rng = random.Random("needle")
    lines = [sentence(rng, WORDS) for _ in range(sentences)]
    step = sentences / len(NEEDLES)
    for place, (needle, _, _) in reversed([*enumerate(NEEDLES)]):
        lines.insert(int((place + 0.5) * step), needle)
    questions = tuple((question, answer) for _, question, answer in NEEDLES)
    return Page("needle", f"{' '.join(lines)}\n\n", questions)


def _stories(sentences: int) -> Page:
    rng, stories = random.Random("paragraph"), []
    heroes = rng.sample(JOBS, len(WISHES))
    for hero, wish in zip(heroes, WISHES, strict=True):
        parts = [sentence(rng, WORDS) for _ in range(sentences // len(WISHES))]
        parts.insert(len(parts) // 2, f"The {hero} wished for a {wish}.")
        stories.append(f"The story of the {hero}. {' '.join(parts)}")
    questions = tuple(
        (f"What did the {hero} wish for?", wish) for hero, wish in zip(heroes, WISHES, strict=True)
    )
    return Page("paragraph", "\n\n".join([*stories, ""]), questions)
