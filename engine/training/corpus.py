"""The documents from which the target learns: cleaned texts of the corpora (whose files `sources` lists), and examples
that the generators make."""

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
# Workload -> its share of the training tokens. Copying and editing get a large share, because the model has to learn
# induction. It learns induction only if much of the text is random words that cannot be guessed: with 2 % of them there
# was no induction after 1.7 M tokens; with `operations` at 0.36 it came within 0.6 M tokens more. Over 82 M tokens the
# shares of the corpora amount to eight readings of the TinyStories (one more in the chats), five of the picture books,
# two and a half of the simple tales, and one of each other corpus.
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
# The shares for the last files of the target's text. They favour the workloads that were answered worst after 69 M
# tokens.
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
# Workloads whose prompts are random words, which cannot be predicted. In their documents only the answer counts in the
# loss.
ANSWER_ONLY = {"operations", "replace", "edit", "append", "chat"}
LONGEST_CHAT_STORY = 900  # characters
COMMONEST = 2500  # how many of the stories' most frequent words a vocabulary has


@cache
def shipped_prompts() -> list[str]:
    """All prompts of the preset files. None of them may occur in training text."""
    return [
        json.loads(line)["prompt"]
        for path in sorted(PROMPTS.glob("*.jsonl"))
        for line in path.open(encoding="utf-8")
    ]


def holds_prompt(text: str) -> bool:
    """Whether the text contains a shipped prompt of more than 15 characters. Shorter prompts occur by chance in too
    many texts; the generators hold them out by their hash instead."""
    return any(prompt in text for prompt in shipped_prompts() if len(prompt) > 15)


def read_corpora(data: Path, split: str = "train") -> dict[str, list[str]]:
    """Workload -> its texts; an empty list if the workload's file is missing. split: "train" or "valid". Training
    texts are left out if they contain a shipped prompt, or share a run of words with a held-out text."""
    texts = read_split(data, split)
    if split == "valid":
        return texts
    texts = without_overlap(texts, read_split(data, "valid"))
    return {name: [t for t in group if not holds_prompt(t)] for name, group in texts.items()}


def make_vocabulary(texts: dict[str, list[str]]) -> Vocabulary:
    """The vocabulary from which the generators draw. It has the most frequent words, the sentences of medium length
    and the short texts among the stories in `texts`."""
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
    """An endless stream of a workload's documents: examples of its generator, or the texts of its corpus, shuffled
    anew at every epoch. No document contains a shipped prompt: the corpora were searched by ``read_corpora``, and
    examples are searched here."""
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
    """The shares of the workloads in `mix` (None: ``MIX``). Workloads with neither a generator nor texts are left out,
    and the other shares are scaled so that their sum is 1."""
    shares = {w: s for w, s in (mix or MIX).items() if w in ALL_MAKERS or texts.get(w)}
    total = sum(shares.values())
    return {workload: share / total for workload, share in shares.items()}
