"""Beam search in groups that avoid each other's words.

Vijayakumar et al., Diverse Beam Search: Decoding Diverse Solutions from Neural Sequence Models (2016). The groups take
their steps in turn. At each step, ``diversity`` is subtracted from a token's score for each beam of an earlier group
that took the same token at this step (the Hamming diversity of the paper). With one group this is plain beam search.

Which beams go on, when a group ends and which text is chosen are decided as in transformers. The score of a running
text is its log-probability; for an ended text, the log-probability is divided by the text's length to the power of
``length_penalty``. A group goes on until it has as many ended texts as beams, and none of its beams scores better than
the worst of these texts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.core.options import number, whole
from engine.errors import UserError
from engine.methods.shared.text_search import Candidate, Path, SeveralTexts


@dataclass
class Group:
    """One group of beams. running: the texts that go on, each with the sum of its log p. ended: the texts that have
    ended, each with its final score."""

    running: list[tuple[float, Path]] = field(default_factory=lambda: [(0.0, ())])
    ended: list[tuple[float, Path]] = field(default_factory=list)


class DiverseBeamDrafter(SeveralTexts):
    key = "diverse_beam"
    title = "Diverse beam search"
    summary = (
        "Keeps the likeliest beginnings, in groups that avoid each other's words: another law."
    )
    text_law = "diverse beam search"
    options = (
        whole("width", 2, 1, 16, "Beams of a group").meaning("Texts that each group keeps."),
        whole("groups", 2, 1, 8, "Groups").meaning("Groups of beams; with one it is plain beam search."),
        number("diversity", 0.5, 0.0, 10.0, "diversity").meaning(
            "What a token costs, in log p, for each beam of an earlier group that has just taken it."
        ),
        number("length_penalty", 1.0, 0.0, 4.0, "length penalty", advanced=True).meaning(
            "The log p of an ended text is divided by its length to this power."
        ),
    )  # fmt: skip
    trial = {"width": 2, "groups": 2}

    @property
    def texts(self):
        return self.settings["width"] * self.settings["groups"]

    def begin(self, start):
        super().begin(start)
        self._groups = [Group() for _ in range(self.settings["groups"])]

    def advance(self):
        paths = dict.fromkeys(path for group in self._groups for _, path in group.running)
        laws = {path: p.log() for path, p in self.laws(list(paths)).items()}
        taken_counts: Counter[int] = Counter()
        for group in self._groups:
            if group.running:
                self._step(group, laws, taken_counts)
                taken_counts.update(path[-1] for _, path in group.running)
        ended = [beam for group in self._groups for beam in group.ended]
        running = [beam for group in self._groups for beam in group.running]
        self.candidates = [
            *(Candidate(path, score / self._weight(path)) for score, path in running),
            *(Candidate(path, score, ended=True) for score, path in ended),
        ]
        self.candidates.sort(key=lambda beam: -beam.score)
        if not running:
            if not ended:
                raise UserError(
                    "No beam can go on: nothing that may come next has any probability."
                )
            self.winner = max(ended, key=lambda beam: beam[0])[1]

    def _step(self, group: Group, laws: dict[Path, Tensor], taken: Counter[int]) -> None:
        """Take one step of a group. taken: for each token, how many beams of earlier groups took it at this step."""
        width = self.settings["width"]
        scores = torch.stack([laws[path] + score for score, path in group.running])
        for token, count in taken.items():
            scores[:, token] -= self.settings["diversity"] * count
        most = max(2, 1 + len(self.ends)) * width
        best = scores.flatten().topk(min(most, scores.numel()))
        running, ended = [], group.ended
        for rank, (score, place) in enumerate(zip(*map(Tensor.tolist, best), strict=True)):
            if score == -torch.inf:
                break
            beam, token = divmod(place, scores.shape[-1])
            above = group.running[beam][1]
            path = (*above, token)
            self.chances[path] = float(laws[above][token].exp())
            if not self.over(path):
                running.append((score, path))
            elif rank < width:
                ended.append((score / self._weight(path), path))
        group.ended = sorted(ended, key=lambda text: -text[0])[:width]
        group.running = running[:width]
        if running and len(group.ended) == width:
            score, path = running[0]
            if score / self._weight(path) <= group.ended[-1][0]:
                group.running = []

    def _weight(self, path: Path) -> float:
        return len(path) ** self.settings["length_penalty"]
