"""The corpora as documents: cleaned, and mixed with the generators' examples (`sources` has the files)."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from engine.training.generators import ALL_MAKERS, Example, examples
from engine.training.generators.words import WORDS, Vocabulary
from engine.training.sources import read_split, without_overlap

PROMPTS = Path(__file__).resolve().parents[2] / "presets" / "prompts"
# Shares of the training tokens. Copying and editing get a large part: induction has to be learned, and it comes only
# when random words that cannot be guessed make up much of it (with 2 % of them there was none after 1.7 M tokens; with
# `operations` at 0.36 it came within 0.6 M more). Over 82 M tokens the shares of the corpora amount to eight readings
# of the TinyStories (one more in the chats), five of the picture books, two and a half of the simple tales, one of the
# others.
MIX = {
    "story": 0.36,
    "picture book": 0.022,
    "fable": 0.002,
    "simple tale": 0.040,
    "tale": 0.024,
    "fairytale": 0.010,
    "chat": 0.09,
    "operations": 0.15,
    "edit": 0.08,
    "template": 0.055,
    "arithmetic": 0.10,
    "gsm8k": 0.014,
    "code": 0.045,
    "mbpp": 0.006,
}
# The last files of the target's text drill the kinds of examples that were answered worst after 69 M tokens.
FINISHING_MIX = {
    "story": 0.30,
    "picture book": 0.020,
    "fable": 0.002,
    "simple tale": 0.030,
    "tale": 0.018,
    "fairytale": 0.006,
    "chat": 0.08,
    "operations": 0.13,
    "replace": 0.09,
    "edit": 0.07,
    "append": 0.09,
    "template": 0.045,
    "arithmetic": 0.08,
    "gsm8k": 0.010,
    "code": 0.035,
    "mbpp": 0.004,
}
# Sources whose prompts are noise (random words) that cannot be predicted: only the answer counts in the loss.
ANSWER_ONLY = {"operations", "replace", "edit", "append", "chat"}
LONGEST_CHAT_STORY = 900  # characters
COMMONEST = 2500  # words of the stories in a vocabulary


@cache
def shipped_prompts() -> list[str]:
    """Every prompt of the preset files: none of them may occur in training text."""
    return [
        json.loads(line)["prompt"]
        for path in sorted(PROMPTS.glob("*.jsonl"))
        for line in path.open(encoding="utf-8")
    ]


def holds_prompt(text: str) -> bool:
    """Whether the text contains a shipped prompt; the shortest are too common to look for (they are held out by
    hash)."""
    return any(prompt in text for prompt in shipped_prompts() if len(prompt) > 15)


def read_corpora(data: Path, split: str = "train") -> dict[str, list[str]]:
    """Workload -> texts. Missing files give empty lists. `split` is train or valid. No training text contains a shipped
    prompt, or a run of words from a held-out text."""
    texts = read_split(data, split)
    if split == "valid":
        return texts
    texts = without_overlap(texts, read_split(data, "valid"))
    return {name: [t for t in some if not holds_prompt(t)] for name, some in texts.items()}


def make_vocabulary(texts: dict[str, list[str]]) -> Vocabulary:
    """The commonest words and the sentences of medium length from the stories, for the generators to draw from."""
    stories = texts.get("story", [])
    if not stories:
        return Vocabulary()
    counts = Counter(word for story in stories for word in re.findall(r"[A-Za-z]+", story))
    words = sorted({*WORDS, *(w for w, _ in counts.most_common(COMMONEST) if len(w) > 1)})
    sentences = sorted(
        {
            s.strip()
            for t in stories
            for s in re.split(r"(?<=[.!?]) |\n+", t)
            if 20 <= len(s.strip()) <= 160
        }
    )
    short = [t for t in stories if len(t) <= LONGEST_CHAT_STORY]
    return Vocabulary(words, sentences, short)


def documents(
    workload: str, texts: dict[str, list[str]], vocabulary: Vocabulary, seed: int
) -> Iterator[Example]:
    """An endless stream: the generator's examples, or the corpus reshuffled at every epoch. No document contains a
    shipped prompt: the corpora were searched when they were read, and the generators' examples are searched here."""
    if workload in ALL_MAKERS:
        for example in examples(workload, seed, vocabulary):
            if not holds_prompt(example.text):
                yield example
    rng = random.Random(f"{workload}/{seed}/corpus")
    while True:
        for text in rng.sample(texts[workload], len(texts[workload])):
            yield Example(workload, "", text)


def available_mix(
    texts: dict[str, list[str]], mix: dict[str, float] | None = None
) -> dict[str, float]:
    """The shares, renormalised over the available workloads."""
    shares = {w: s for w, s in (mix or MIX).items() if w in ALL_MAKERS or texts.get(w)}
    total = sum(shares.values())
    return {workload: share / total for workload, share in shares.items()}
