"""Writes the target's training text to files of windows before the training begins, with a record of how much text
comes from each source."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

import numpy as np

from engine.training.common import need_file
from engine.training.corpus import FINISHING_MIX, MIX, read_corpora
from engine.training.distill import MixedWindows
from engine.training.packing import Mixer, windows
from engine.training.plan import TrainingPlan, WindowFile

LONGEST_STORY = 255  # the most tokens of a story in the file of stories


def path_of(folder: Path, file: int) -> Path:
    return folder / f"windows-{file:02d}.npz"


def write_files(
    folder: Path, tokenizer, data: Path, plan: TrainingPlan, seed: int, say=print
) -> None:
    """Write all missing files of the plan, and the file of stories. All files are filled from one stream of documents,
    so no text of a corpus comes a second time before every other text of this corpus has come once."""
    folder.mkdir(parents=True, exist_ok=True)
    _save_stories(folder / "stories.npz", tokenizer, data)
    if all(path_of(folder, file.number).exists() for file in plan.files):
        return
    mixer = Mixer(tokenizer, data, seed)
    for file in plan.files:
        mixer.draw_by(FINISHING_MIX if file.finishing else MIX)
        stream = windows(mixer, file.length, seed + file.number)
        count = plan.steps_per_file * (plan.step_tokens // file.length)
        mixed = MixedWindows([stream], count)
        if not path_of(folder, file.number).exists():
            mixed.save(path_of(folder, file.number))
        _save_sources(folder / "sources.json", mixer, file)
        say(f"windows: file {file.number + 1} of {len(plan.files)}")


def _save_sources(path: Path, mixer: Mixer, file: WindowFile) -> None:
    """After a file is written, record how many tokens were drawn from each source so far, and how many times its text
    was gone through."""
    records = json.loads(path.read_text()) if path.exists() else {}
    records[str(file.number)] = {"tokens": dict(mixer.drawn), "readings": mixer.readings()}
    path.write_text(json.dumps(records, indent=1) + "\n")


def _save_stories(path: Path, tokenizer, data: Path) -> None:
    """Save all training stories of 60 to ``LONGEST_STORY`` tokens, uncut; the training against repetition
    (``unlikelihood``) uses them."""
    encoded = tokenizer.backend_tokenizer.encode_batch(read_corpora(data)["story"])
    stories = [e.ids for e in encoded if 60 <= len(e.ids) <= LONGEST_STORY]
    ends = np.cumsum([len(s) for s in stories])
    np.savez(path, tokens=np.array([t for s in stories for t in s], dtype=np.uint16), ends=ends)


def read_stories(folder: Path) -> list[list[int]]:
    with np.load(folder / "stories.npz") as saved:
        tokens, ends = saved["tokens"].tolist(), saved["ends"].tolist()
    return [tokens[a:b] for a, b in zip([0, *ends], ends, strict=False)]


@lru_cache(maxsize=1)
def windows_of(folder: Path, file: int) -> MixedWindows:
    return MixedWindows.load(need_file(path_of(folder, file), "windows"))
