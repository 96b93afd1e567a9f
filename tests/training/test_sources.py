"""Honest held-out text over all corpora: no training text contains held-out text or text that ends in mid-sentence."""

from __future__ import annotations

import json

from engine.training.corpus import read_corpora
from engine.training.sources import (
    HELD_OUT_EVERY,
    READERS,
    ends_cleanly,
    runs_of_words,
    without_overlap,
)

SEPARATOR = "\n<|endoftext|>\n"
STORY = (
    "Tom had a red ball. He lost it in the park, and he looked for it all day long, until {} came."
)
LONG = "Once there was a {} who went out to see the wide world and found a friend on the way home to the old mill. The end."


def write(folder, file: str, texts: list[str]) -> None:
    if file.endswith(".jsonl"):
        rows = [{"question": t, "answer": "#### 3", "text": t, "code": "x = 1"} for t in texts]
        (folder / file).write_text("\n".join(map(json.dumps, rows)))
    else:
        (folder / file).write_text(SEPARATOR.join(texts))


def test_every_fiftieth_document_is_held_out(tmp_path):
    for name, (file, _) in READERS.items():
        write(
            tmp_path,
            file,
            [" ".join(f"{name}{i}x{j}" for j in range(30)) + "." for i in range(100)],
        )
    train, valid = (read_corpora(tmp_path, split) for split in ("train", "valid"))
    for name in READERS:
        assert len(valid[name]) == 100 // HELD_OUT_EVERY and train[name]
        assert not set(valid[name]) & set(train[name])


def test_a_story_of_the_validation_file_is_dropped_from_all_others(tmp_path):
    write(tmp_path, "tinystories_valid.txt", [LONG.format("fox")])
    write(tmp_path, "tinystories_train.txt", [STORY.format("Mia")])
    again = "A new beginning. " + LONG.format("fox")
    write(tmp_path, "tinystories_extra.txt", [STORY.format("Ben"), again])
    write(tmp_path, "gutenberg_tales_pd.txt", [STORY.format("Sam"), again])
    texts = read_corpora(tmp_path)
    assert texts["story"] == [STORY.format("Mia"), STORY.format("Ben")]
    assert texts["tale"] == [STORY.format("Sam")]


def test_overlap_is_a_long_run_of_words():
    kept = without_overlap(
        {"story": ["a b c", LONG.format("hen")]}, {"story": [LONG.format("owl")]}
    )
    assert kept["story"] == ["a b c"], "the same from the fifth word on"
    assert len(runs_of_words("one two three")) == 1


def test_ends():
    assert ends_cleanly('"Yes!" she said.') and ends_cleanly("They slept. The End")
    assert not ends_cleanly("They went to the")
