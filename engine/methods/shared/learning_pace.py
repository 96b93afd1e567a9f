"""Decides when a visitor's copy of a draft model learns: for some milliseconds per step, or after a number of rejected
tokens."""

import time
from collections.abc import Sequence

from torch import Tensor

from engine.core.drafter import Kept
from engine.core.options import number, whole
from engine.core.tree import ROOT
from engine.methods.shared.private_draft import PrivateDraft

REREAD = 4
"""The number of updates after which a new reader is run over the text so far. Until then, keys and values that were
computed with older weights are used."""
USUAL = 10.0  # assumed milliseconds of an update, before the first one was timed

LEARNING = (
    number("milliseconds", 2.0, 0.0, 100.0, "Learning per step").meaning(
        "Milliseconds of learning after a step, on average (0: the number of refusals decides instead)."
    ),
    whole(
        "every", 8, 1, 256, "Refusals per update", advanced=True, depends_on=("milliseconds", 0.0)
    ).meaning("Refusals from one update to the next where no clock decides."),
    number("rate", 0.001, 0.00001, 0.2, "Learning rate", advanced=True).meaning(
        "How far an update may move a weight, as a share of its size."
    ),
)
"""Options of a drafter with a copy of the draft model that learns."""


class Pace:
    """Decides when the next update is due. learned: the milliseconds spent on updates so far."""

    def __init__(self, milliseconds: float, every: int) -> None:
        """milliseconds: the mean time for updates per step. If it is 0, an update comes after every ``every`` rejected
        tokens instead."""
        self._budget, self._every = milliseconds, every
        self._saved, self._cost = 0.0, USUAL
        self.learned = 0.0

    def due(self, waiting: int) -> bool:
        """Return whether to make an update before the next step. waiting: the number of rejected tokens since the last
        update. Must be called once per step."""
        self._saved = min(self._saved + self._budget, 4 * self._cost)
        due = self._saved >= self._cost if self._budget else waiting >= self._every
        return bool(due and waiting)

    def took(self, milliseconds: float) -> None:
        """Record that an update took this many milliseconds."""
        self._saved, self.learned = self._saved - milliseconds, self.learned + milliseconds
        self._cost += 0.3 * (milliseconds - self._cost)


class LearningDraft:
    """Mixin of drafters whose copy of the draft model is updated between steps, from the tokens that the target
    rejected. The method ``_reading(model)`` of the drafter must return a new reader of the text."""

    learns = True

    def _remember_pair(self, models, draft: str) -> None:
        """Store which target and which draft model the learned weights belong to. draft: the name of the draft
        model."""
        (role,) = self.needs
        folders = models.folders
        self._pair = folders.get("target", models.target.name), folders.get(role, draft)

    def _begin_learning(self, private: PrivateDraft, tokens: Sequence[int]) -> None:
        """Start learning in a new text. private: the visitor's copy of the draft model. tokens: the prompt's tokens in
        the draft model's vocabulary."""
        self._private, self._passes = private, 0  # _passes: the passes of discarded readers
        self._pace = Pace(self.settings["milliseconds"], self.settings["every"])
        self._passage = private.begin(tokens)
        self._open()

    def _open(self) -> None:
        self._reader, self._version = self._reading(self._private.model), self._private.version

    def _learn(self) -> None:
        """Update the copy of the draft model if an update is due (``Pace.due``). If the text's reader still uses
        weights from before too many updates, replace it by a new reader, which is run over the whole text again."""
        private = self._private
        if self._pace.due(private.waiting):
            began = time.perf_counter()
            private.update()
            self.start.memory.trim()
            self._pace.took(1000 * (time.perf_counter() - began))
        behind = private.version - self._version
        if behind >= REREAD or (behind and not self._version):
            self._passes += self._reader.passes
            self._open()

    def _refusal(self, kept: Kept) -> Tensor | None:
        """Record how many tokens of a step were judged and how many of them were accepted. Returns the target's p [V]
        at the rejected token; None if no token was rejected."""
        tree, accepted = kept.tree, len(kept.path)
        self._private.history.see(accepted, min(accepted + 1, len(tree)))
        if accepted == len(tree) or len(kept.tokens) == accepted or kept.logits is None:
            return None
        return kept.logits[(kept.path[-1] if kept.path else ROOT) + 1].float().softmax(-1)

    def close(self) -> None:
        self.start.memory.trim()

    def passes(self) -> dict[str, int]:
        (role,) = self.needs
        return {role: self._passes + self._reader.passes}
