"""The target's training text as files of windows, written before the training, and a record of what was read from each
source."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np

from engine.training.corpus import FINISHING_MIX, MIX, read_corpora
from engine.training.packing import Mixer, windows
from engine.training.plan import TrainingPlan, WindowFile

LONGEST_STORY = 255  # tokens, of the stories that are kept separately


def path_of(folder: Path, file: int) -> Path:
    return folder / f"windows-{file:02d}.npz"


def write_files(
    folder: Path, tokenizer, data: Path, plan: TrainingPlan, seed: int, say=print
) -> None:
    """Write all missing files, and the file of the stories. The stream of documents runs through all files, so every
    corpus is read to its end before any of its texts comes again."""
    folder.mkdir(parents=True, exist_ok=True)
    _save_stories(folder / "stories.npz", tokenizer, data)
    if all(path_of(folder, file.number).exists() for file in plan.files):
        return
    mixer = Mixer(tokenizer, data, seed)
    for file in plan.files:
        mixer.draw_by(FINISHING_MIX if file.finishing else MIX)
        stream = windows(mixer, file.length, seed + file.number)
        count = plan.steps_per_file * (plan.step_tokens // file.length)
        rows = [next(stream) for _ in range(count)]
        if not path_of(folder, file.number).exists():
            _save(path_of(folder, file.number), rows)
        _save_sources(folder / "sources.json", mixer, file)
        say(f"windows: file {file.number + 1} of {len(plan.files)}")


def _save(path: Path, rows: list[tuple[np.ndarray, np.ndarray]]) -> None:
    temporary = path.with_suffix(".tmp.npz")
    counted = np.packbits(np.stack([r[1] for r in rows]), axis=1)
    np.savez(temporary, tokens=np.stack([r[0] for r in rows]), counted=counted)
    temporary.replace(path)


def _save_sources(path: Path, mixer: Mixer, file: WindowFile) -> None:
    """Record, after each file, the tokens drawn from each source so far, and how often its text has been read."""
    known = json.loads(path.read_text()) if path.exists() else {}
    known[str(file.number)] = {"tokens": dict(mixer.drawn), "readings": mixer.readings()}
    path.write_text(json.dumps(known, indent=1) + "\n")


def _save_stories(path: Path, tokenizer, data: Path) -> None:
    """Save the whole training stories that are short enough for one row, for the training on stories alone."""
    encoded = tokenizer.backend_tokenizer.encode_batch(read_corpora(data)["story"])
    stories = [e.ids for e in encoded if 60 <= len(e.ids) <= LONGEST_STORY]
    ends = np.cumsum([len(s) for s in stories])
    np.savez(path, tokens=np.array([t for s in stories for t in s], dtype=np.uint16), ends=ends)


def read_stories(folder: Path) -> list[list[int]]:
    with np.load(folder / "stories.npz") as saved:
        tokens, ends = saved["tokens"].tolist(), saved["ends"].tolist()
    return [tokens[a:b] for a, b in zip([0, *ends], ends, strict=False)]


class WindowFiles:
    """The windows of the file that is being read; waits for files that are still being written."""

    def __init__(self, folder: Path, wait: float = 1800.0):
        self.folder, self.wait = folder, wait
        self.file: int | None = None

    def _open(self, file: int) -> None:
        path, until = path_of(self.folder, file), time.monotonic() + self.wait
        while not path.exists():
            if time.monotonic() > until:
                raise FileNotFoundError(f"no {path}: run the recipe `windows`")
            time.sleep(1.0)
        with np.load(path) as saved:
            self.tokens, self.counted = saved["tokens"], saved["counted"]
        self.file = file

    def rows(self, file: int, rows: range) -> tuple[np.ndarray, np.ndarray]:
        """tokens int64 [n, T], counted bool [n, T]"""
        if file != self.file:
            self._open(file)
        part = slice(rows.start, rows.stop)
        counted = np.unpackbits(self.counted[part], axis=1, count=self.tokens.shape[1])
        return self.tokens[part].astype(np.int64), counted.astype(bool)
