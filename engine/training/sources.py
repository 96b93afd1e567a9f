"""Loads the files of the corpora, and divides their texts into training texts and held-out texts.

`ORIGINS` says where the files come from, so that the training can be repeated: put the files into one folder, and name
it with `--data`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from engine.training.tokenizer import EOS

HELD_OUT_EVERY = 50  # one of so many documents is held out, in each file without a validation file
SHARED_WORDS = 20  # a training text that shares so long a run with a held-out text is left out


def separated(path: Path) -> list[str]:
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


READERS = {
    "picture book": ("storybooks_ccby.txt", separated),
    "fable": ("aesop_for_children.txt", separated),
    "simple tale": ("gutenberg_simple_pd.txt", separated),
    "tale": ("gutenberg_tales_pd.txt", separated),
    "fairytale": ("fairytales.txt", separated),
    "gsm8k": ("gsm8k_train.jsonl", _gsm8k),
    "mbpp": ("mbpp.jsonl", _mbpp),
}
# Workload -> (origin of its text, licence).
ORIGINS = {
    "story": (
        "TinyStories (Eldan & Li), Hugging Face `roneneldan/TinyStories`",
        "CDLA-Sharing-1.0",
    ),
    "picture book": ("African Storybook; Pratham Books (StoryWeaver)", "CC BY 4.0, CC BY 3.0"),
    "fable": ("The Aesop for Children, 1919, Project Gutenberg", "public domain"),
    "simple tale": ("animal tales and readers, Project Gutenberg", "public domain"),
    "tale": ("Lang, Grimm, Andersen, Baum, Project Gutenberg", "public domain"),
    "fairytale": (
        "Project Gutenberg, as cleaned for FairytaleQA",
        "Apache-2.0, public-domain texts",
    ),
    "gsm8k": ("GSM8K, training part (OpenAI), Hugging Face `openai/gsm8k`", "MIT"),
    "mbpp": ("MBPP (Google Research), Hugging Face `google-research-datasets/mbpp`", "CC BY 4.0"),
}
STORY_FILES = {
    "train": ["tinystories_train.txt", "tinystories_extra.txt"],
    "valid": ["tinystories_valid.txt"],
}


def read_split(data: Path, split: str) -> dict[str, list[str]]:
    """Workload -> its training texts (`train`) or held-out texts (`valid`). Workloads without a file are left out."""
    texts = {
        name: [
            t
            for i, t in enumerate(read(data / file))
            if (i % HELD_OUT_EVERY == HELD_OUT_EVERY - 1) == (split == "valid")
        ]
        for name, (file, read) in READERS.items()
        if (data / file).exists()
    }
    files = [data / name for name in STORY_FILES[split]]
    stories = [t for file in files if file.exists() for t in separated(file)]
    texts["story"] = [t for t in stories if ends_cleanly(t)] if split == "train" else stories
    return texts


def ends_cleanly(text: str) -> bool:
    """Whether the text ends with a whole sentence. From texts that are cut off, a model could not learn where a text
    ends."""
    return text[-1] in ".!?\"'" or text.lower().endswith("the end")


def runs_of_words(text: str) -> set[str]:
    """All runs of SHARED_WORDS successive words of the text. A text with fewer words is one run."""
    words = re.findall(r"\w+", text.lower())
    last = max(1, len(words) - SHARED_WORDS + 1)
    return {" ".join(words[i : i + SHARED_WORDS]) for i in range(last)}


def without_overlap(
    train: dict[str, list[str]], held: dict[str, list[str]]
) -> dict[str, list[str]]:
    """The training texts without those that share a run of SHARED_WORDS words with a held-out text. Only prose is
    checked; the texts of other workloads all stay. train, held: workload -> texts."""
    prose = [w for w in held if w not in ("gsm8k", "mbpp")]
    runs = {run for workload in prose for text in held[workload] for run in runs_of_words(text)}
    return {
        workload: [t for t in texts if workload not in prose or runs.isdisjoint(runs_of_words(t))]
        for workload, texts in train.items()
    }
