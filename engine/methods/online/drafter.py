"""A chain from a draft model that learns while it is used; each visitor has their own copy.

Liu et al., Online Speculative Decoding (ICML 2024). Where a drafted token was refused, the target's distribution is
stored, and between steps the visitor's copy of the draft is distilled on it (``engine.methods.shared.private_draft``),
within a time budget. q always comes from the weights that drew the token, so the text stays the target's. A copy that
has learned runs uncompiled, because compiled passes have their weights built in.
"""

import time

from engine.core.drafter import Kept
from engine.core.exhibits import Curve, Later, Series, Table
from engine.core.options import whole
from engine.core.tree import ROOT
from engine.methods.shared.draft_model import DraftModelDrafter, stop_option
from engine.methods.shared.learning_pace import LEARNING, Pace
from engine.methods.shared.private_draft import PrivateDraft

REREAD = 4
"""Updates after which the text so far is read anew: keys and values of older weights are good enough for a while."""


class OnlineDrafter(DraftModelDrafter):
    key = "online"
    title = "Online speculative decoding"
    family = "chain"
    summary = "Your own copy of the draft model learns from its refused tokens while it drafts."
    options = (
        whole("length", 4, 1, 32).meaning("Most tokens drafted in a step."),
        *LEARNING,
        stop_option(
            0.25,
            "Draft no further when the chance that everything so far is kept falls below this, by q",
        ),
    )
    learns = True
    trial = {"length": 2, "milliseconds": 0.0, "every": 2, "rate": 0.05}

    @classmethod
    def build(cls, settings, models):
        made = super().build(settings, models)
        folders = models.folders
        made._pair = (
            folders.get("target", models.target.name),
            folders.get("draft", made.draft.name),
        )
        return made

    def begin(self, start):
        self._passes = 0  # of discarded readers
        rate = self.settings["rate"]
        key = (self.key, *self._pair, rate)
        self._private = start.memory.store(key, lambda: PrivateDraft(self.draft, rate))
        super().begin(start)
        self._reader, self._read = self._reading(self._private.model), self._private.version
        self._passage = self._private.begin(start.prompt)
        self._pace = Pace(self.settings["milliseconds"], self.settings["every"])

    def propose(self, context, max_depth):
        self._learn()
        behind = self._private.version - self._read
        if behind >= REREAD or (behind and not self._read):
            self._passes += self._reader.passes
            self._reader, self._read = self._reading(self._private.model), self._private.version
        self._passage.tokens = list(context)
        return self._chain(context, min(self.settings["length"], max_depth), self._likely)

    def _learn(self) -> None:
        """Update the copy, if there was a refusal since the last update and the budget or the count allows it."""
        if not self._pace.due(self._private.waiting):
            return
        began = time.perf_counter()
        self._private.update()
        self.start.memory.trim()
        self._pace.took(1000 * (time.perf_counter() - began))

    def observe(self, kept: Kept):
        super().observe(kept)
        tree, accepted, private = kept.tree, len(kept.path), self._private
        private.history.see(accepted, min(accepted + 1, len(tree)))
        self._passage.tokens += [tree.tokens[node] for node in kept.path]
        refused = accepted < len(tree) and len(kept.tokens) > accepted
        if refused and kept.logits is not None:
            row = kept.logits[(kept.path[-1] if kept.path else ROOT) + 1]
            private.failed(self._passage, len(self._passage.tokens), row.float().softmax(-1))
        if len(private.history.points) > 1:
            tree.exhibits.append(Later(self._shown_history))
        tree.exhibits.append(Later(self._shown_learning))

    def close(self):
        self.start.memory.trim()

    def passes(self):
        return {"draft": self._passes + self._reader.passes}

    def _shown_history(self) -> Curve:
        history = self._private.history
        places = [history.width * (place + 1) for place in range(len(history.points))]
        return Curve(
            title="Drafted tokens kept since you began",
            note=f"Each point is the share kept of {history.width} judged tokens, over all of your texts.",
            x=places,
            series=[Series("kept", list(history.points))],
            x_label="drafted tokens judged",
            y_label="share kept",
        )

    def _shown_learning(self) -> Table:
        private = self._private
        rows = [
            ["refusals to learn from, over all of your texts", private.failures],
            ["updates of your copy of the draft", private.version],
            ["milliseconds of learning in this text", round(self._pace.learned, 1)],
            ["kilobytes that your copy and its examples take", round(private.nbytes / 1000)],
        ]
        return Table(
            title="What your copy of the draft has learned from", columns=["", "value"], rows=rows
        )
