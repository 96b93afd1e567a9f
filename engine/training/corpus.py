"""The corpora as documents: read from the data folder, cleaned, and mixed with the generators' examples.

Public origins, so that anyone can train again (put the files into one folder and pass it as `--data`):
    tinystories_train.txt, tinystories_valid.txt   Hugging Face roneneldan/TinyStories        CDLA-Sharing-1.0
    fairytales.txt                                 FairytaleQA's Project Gutenberg tales      Apache-2.0
    gsm8k_train.jsonl                              Hugging Face openai/gsm8k                  MIT
    mbpp.jsonl                                     Hugging Face google-research-datasets/mbpp CC BY 4.0
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .generators import MAKERS, examples
from .generators.words import WORDS, Vocabulary
from .tokenizer import EOS

PROMPTS = Path(__file__).resolve().parents[2] / "presets" / "prompts"
# Shares of the training tokens. Copying and editing get a good part: induction has to be learned, and it comes only
# when random words that cannot be guessed make up much of it (with 2 % of them there was none after 1.7 M tokens;
# with `operations` at 0.36 it came within 0.6 M more).
MIX = {
    "story": 0.38,
    "fairytale": 0.01,
    "operations": 0.22,
    "edit": 0.14,
    "template": 0.09,
    "arithmetic": 0.09,
    "gsm8k": 0.01,
    "code": 0.04,
    "mbpp": 0.02,
}
# Sources whose prompt is noise to predict (random words): their loss counts the answer only.
ANSWER_ONLY = {"operations", "edit"}


@dataclass(frozen=True)
class Document:
    workload: str
    prompt: str
    answer: str

    @property
    def text(self) -> str:
        return self.prompt + self.answer


@cache
def shipped_prompts(folder: Path = PROMPTS) -> list[str]:
    """Every prompt of the preset files: none of them may stand in training text."""
    return [
        json.loads(line)["prompt"]
        for path in sorted(folder.glob("*.jsonl"))
        for line in path.open(encoding="utf-8")
    ]


def holds_prompt(text: str) -> bool:
    """Whether a shipped prompt stands in it; the shortest are too common to look for (they are held out by hash)."""
    return any(prompt in text for prompt in shipped_prompts() if len(prompt) > 15)


def _separated(path: Path) -> list[str]:
    return [t for t in (part.strip() for part in path.read_text("utf-8").split(EOS)) if len(t) > 40]


def _json_lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def _gsm8k(path: Path) -> list[str]:
    texts = []
    for row in _json_lines(path):
        answer = re.sub(r"<<[^>]*>>", "", row["answer"])
        texts.append(
            f"Question: {row['question']}\nAnswer: "
            + answer.replace("#### ", "The answer is ")
            + "."
        )
    return texts


def _mbpp(path: Path) -> list[str]:
    return [
        f"# {row['text']}\n" + row["code"].replace("\r\n", "\n").replace("\t", "    ").rstrip()
        for row in _json_lines(path)
    ]


def read_corpora(data: Path, split: str = "train") -> dict[str, list[str]]:
    """Workload -> texts. Missing files give empty lists. `split` is train or valid; outside TinyStories, whose
    validation file is its own, every fiftieth document is for validation. No training text holds a shipped prompt."""
    readers = {
        "fairytale": ("fairytales.txt", _separated),
        "gsm8k": ("gsm8k_train.jsonl", _gsm8k),
        "mbpp": ("mbpp.jsonl", _mbpp),
    }
    texts = {
        name: [t for i, t in enumerate(read(data / file)) if (i % 50 == 49) == (split == "valid")]
        for name, (file, read) in readers.items()
        if (data / file).exists()
    }
    stories = data / f"tinystories_{split}.txt"
    texts["story"] = _separated(stories) if stories.exists() else []
    if split == "valid":
        return texts
    return {name: [t for t in some if not holds_prompt(t)] for name, some in texts.items()}


def make_vocabulary(texts: dict[str, list[str]], limit: int = 2500) -> Vocabulary:
    """The commonest words and the middling sentences of the stories, for the generators to draw from."""
    stories = texts.get("story", [])
    if not stories:
        return Vocabulary()
    counts = Counter(word for story in stories for word in re.findall(r"[A-Za-z]+", story))
    words = sorted({*WORDS, *(w for w, _ in counts.most_common(limit) if len(w) > 1)})
    sentences = sorted(
        {
            s.strip()
            for t in stories
            for s in re.split(r"(?<=[.!?]) |\n+", t)
            if 20 <= len(s.strip()) <= 160
        }
    )
    return Vocabulary(words, sentences)


def documents(
    workload: str, texts: dict[str, list[str]], vocabulary: Vocabulary, seed: int
) -> Iterator[Document]:
    """An endless stream: the generator's examples, or the corpus reshuffled at every epoch. No document holds a shipped
    prompt: the corpora were searched when they were read, the generators' examples are searched here."""
    if workload in MAKERS:
        for example in examples(workload, seed, vocabulary):
            if not holds_prompt(example.text):
                yield Document(workload, example.prompt, example.answer)
    rng = random.Random(f"{workload}/{seed}/corpus")
    while True:
        for text in rng.sample(texts[workload], len(texts[workload])):
            yield Document(workload, "", text)


def available_mix(
    texts: dict[str, list[str]], mix: dict[str, float] | None = None
) -> dict[str, float]:
    """The shares, renormalised over what is at hand."""
    shares = {w: s for w, s in (mix or MIX).items() if w in MAKERS or texts.get(w)}
    total = sum(shares.values())
    return {workload: share / total for workload, share in shares.items()}
