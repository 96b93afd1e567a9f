"""Several drawn texts side by side; the first text that ends is the answer.

Agarwal et al., First Finish Search: Efficient Test-Time Scaling in Large Language Models (2025). With the pace
``lockstep`` each text gets one token in every pass (the paper's Sync-FFS), so the answer is the shortest of the texts.
With the pace ``drafted`` each text also guesses the tokens that followed an earlier occurrence of its last tokens, and
keeps the guesses that equal its own draws. Then the answer is the first text in time, as with separate workers
(Async-FFS).

With the same seed both paces draw the same texts; only the choice of the answer differs. With the pace ``drafted`` a
long text may end first because its tokens are easy to guess, so the answer does not follow the law of First Finish
Search. ``engine.proof.first_finish_figures`` shows by how much.
"""

from __future__ import annotations

import math

from torch import Tensor

from engine.core.chance import JudgeChance
from engine.core.options import choice, whole
from engine.core.sampling import distribution
from engine.methods.shared.ngram_index import NgramIndex
from engine.methods.shared.text_search import Candidate, Path, SeveralTexts

APART = 1_000_003  # difference between the seeds of two texts


class Lane:
    """One of the texts, with its own seed; plain decoding with this seed draws the same text."""

    def __init__(self, seed: int, prompt: tuple[int, ...]) -> None:
        self.path: Path = ()
        self.log_p = 0.0
        self._chance = JudgeChance(seed % 2**63)
        self._prompt = prompt
        self._index = NgramIndex(1, 3)

    def draw(self, p: Tensor) -> None:
        """Draw the text's next token from p [V]."""
        token = self._chance.draw(p, len(self._prompt) + len(self.path))
        self.path += (token,)
        self.log_p += math.log(float(p[token]))

    def guesses(self, most: int) -> Path:
        """Return the tokens that followed an earlier occurrence of this text's last tokens, at most ``most`` of
        them."""
        text = [*self._prompt, *self.path]
        if not most:
            return ()
        self._index.read(text)
        before = self._index.latest(text)
        return () if before is None else tuple(text[before[0] : before[0] + most])


class FirstFinishDrafter(SeveralTexts):
    key = "first_finish"
    title = "First Finish Search"
    summary = "Draws several texts at once, and the first that ends is the answer: another law."
    text_law = "first finish search"
    options = (
        whole("lanes", 4, 1, 16, "Texts").meaning("Texts that are drawn side by side; they differ above temperature 0."),
        choice("pace", "lockstep", ("lockstep", "drafted"), "Pace").meaning("One token a pass for each text, or as many as its guesses were right."),
        whole("length", 4, 1, 16, depends_on=("pace", "drafted")).meaning("Tokens that each text guesses in a pass."),
    )  # fmt: skip
    trial = {"lanes": 2}

    @property
    def texts(self):
        guessed = self.settings["length"] if self.settings["pace"] == "drafted" else 0
        return self.settings["lanes"] * (1 + guessed)

    def begin(self, start):
        super().begin(start)
        seeds = [self.sampling.seed + APART * lane for lane in range(self.settings["lanes"])]
        self.lanes = [Lane(seed, tuple(start.prompt)) for seed in seeds]
        self._laws: dict[Path, Tensor] = {}  # p after texts that were read and may still be reached

    def advance(self):
        running = [lane for lane in self.lanes if not self.over(lane.path)]
        read = {lane: self._guessed(lane) for lane in running}
        needed = dict.fromkeys(path for paths in read.values() for path in paths)
        if new := [path for path in needed if not self.was_read(path)]:
            rows = distribution(self.read(new), self.sampling)
            self._laws |= zip(new, rows, strict=True)
        for lane, paths in read.items():
            while lane.path in paths and not self.over(lane.path):
                law = self._laws[lane.path]
                lane.draw(law)
                self.chances[lane.path] = float(law[lane.path[-1]])
        ahead = {lane.path for lane in self.lanes}
        self._laws = {
            path: p
            for path, p in self._laws.items()
            if any(path[: len(text)] == text for text in ahead)
        }
        self._choose()

    def _guessed(self, lane: Lane) -> list[Path]:
        """Return the text of a lane, then the text with the first guessed token, with the first two guessed tokens, and
        so on."""
        most = self.settings["length"] if self.settings["pace"] == "drafted" else 0
        guesses = lane.guesses(max(0, min(most, self.room - len(lane.path) - 1)))
        whole = lane.path + guesses
        return [whole[:end] for end in range(len(lane.path), len(whole) + 1)]

    def _choose(self) -> None:
        self.candidates = [
            Candidate(lane.path, lane.log_p, self.over(lane.path)) for lane in self.lanes
        ]
        finished = [lane.path for lane in self.lanes if lane.path[-1] in self.ends]
        if not finished and all(self.over(lane.path) for lane in self.lanes):
            finished = [lane.path for lane in self.lanes]
        if finished:
            self.winner = finished[0]
