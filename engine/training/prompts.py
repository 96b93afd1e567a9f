"""Writes the prompts that come with Draftscope: held-out examples of all kinds from the generators, in the formats of
the training text.

The story openings in `presets/prompts/story.jsonl` are written by hand; texts that contain one of them are left out of
the training.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from engine.training.corpus import PROMPTS
from engine.training.generators import MAKERS, Example, examples
from engine.training.generators.words import Vocabulary

SEED = 3
PER_WORKLOAD = 48
LONGEST = 420  # characters
WITH_EXPECTED = {"operations", "edit", "arithmetic"}
NOTES = {
    "Copy": "Every token of the answer stands in the prompt: retrieval drafts long runs for nothing.",
    "Repeat": "The first copy is work, the later ones are free for a drafter that looks back.",
    "Reverse": "All words are in the prompt, their order is not: retrieval finds each word once and then goes wrong.",
    "Sort": "The words are known, the choice is the target's: trees hedge where a chain guesses.",
    "Shuffle": "Any order is right: the target itself is undecided, so there is little for a draft to know.",
    "Replace": "Mostly a copy, with a break at every replaced word.",
    "Remove": "A copy with one gap: watch what happens right after it.",
    "Number": "Easy scaffolding between copied words: a small draft knows the scaffolding.",
    "Join": "The same words with other separators: retrieval runs break at every comma.",
    "Edit: change": "A long copy with a single change: one rejection in the middle of free tokens.",
    "Edit: rename": "Code given again under another name: long accepted runs, and a break at each name.",
    "Edit: add": "A pure copy and then one more sentence from the instruction.",
    "Write": "Keys and punctuation repeat in every record, values do not: acceptance goes up and down in step.",
    "JSON": "The values are in the prompt, the layout is a habit.",
    "Form": "Labels and values alternate between two places of the prompt.",
    "Table with": "Separators are certain, cells are free: the certain part is where drafts win.",
    "Diary": "Each line copies the frame of the line before and changes two words.",
    "Letter": "A fixed letter with four blanks: nearly everything can be drafted.",
    "Recipe": "A numbered list in one frame: only the ingredient changes.",
    "Bill": "Item and price come in the order of the prompt, the frame around them is a habit.",
    "CSV": "Commas are certain, cells are free: each row is drafted up to its next value.",
    "Invitation": "A fixed letter with a few blanks from the prompt.",
    "Compute": "Short answers, each worth a full target decision: drafts guess digits badly.",
    "Add step": "The frame repeats, the digits must be right.",
    "Subtract step": "The frame repeats, the digits must be right, and so must each borrow.",
    "Multiply step": "The frame repeats; each digit is a product and a sum.",
    "Count": "A regular sequence: the draft either has the rule or has nothing.",
    "Table of": "The left side is certain, the product is not.",
    "Question": "The answer restates the question, then computes.",
    "#": "Indentation and keywords are easy, names come from the signature.",
}


def kind(prompt: str) -> str:
    return next(k for k in sorted(NOTES, key=len, reverse=True) if prompt.startswith(k))


def choose(workload: str, count: int = PER_WORKLOAD, used: str = "") -> list[Example]:
    """At most `count` different held-out examples of a workload, of its kinds in turn. An example is left out if its
    prompt occurs in the text `used`."""
    stream = itertools.islice(examples(workload, SEED, Vocabulary(), held_out=True), 6 * count)
    by_kind: dict[str, list[Example]] = {}
    seen = set()
    for example in stream:
        if (
            len(example.prompt) <= LONGEST
            and example.prompt not in seen
            and example.prompt not in used
        ):
            seen.add(example.prompt)
            by_kind.setdefault(kind(example.prompt), []).append(example)
    rounds = itertools.zip_longest(*(by_kind[k] for k in sorted(by_kind)))
    return [e for one_round in rounds for e in one_round if e is not None][:count]


def training_text(checkpoints: Path, tokenizer) -> str:
    """The text of all window files in the folder, which is all text from which the target learned."""
    texts = []
    for path in sorted(checkpoints.glob("windows-*.npz")):
        with np.load(path) as saved:
            texts += tokenizer.batch_decode(saved["tokens"].astype(int).tolist())
    return "\n".join(texts)


def write(used: str = "", workloads: Iterable[str] | None = None, folder: Path = PROMPTS) -> None:
    for workload in workloads or MAKERS:
        rows = []
        for index, example in enumerate(choose(workload, used=used), 1):
            row = {
                "id": f"{workload}-{index:02d}",
                "prompt": example.prompt,
                "note": NOTES[kind(example.prompt)],
            }
            if (workload in WITH_EXPECTED and kind(example.prompt) != "Compute") or kind(
                example.prompt
            ) in ("JSON", "Form", "Recipe", "Bill"):
                row["expected"] = example.answer
            rows.append(json.dumps(row, ensure_ascii=False))
        (folder / f"{workload}.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
