"""A chain from a draft model that learns while it is used; each visitor has a copy of their own.

Liu et al., Online Speculative Decoding (ICML 2024). Where a drafted token was refused, the target's distribution is
stored, and between steps the visitor's copy of the draft model is distilled on it
(``engine.methods.shared.private_draft``), within a time limit. q always comes from the weights that drew the token, so
the text stays the target's. A copy that has learned runs uncompiled, because compiled passes have their weights built
in.
"""

from engine.core.drafter import Kept
from engine.core.exhibits import Curve, Later, Series, Table
from engine.core.options import whole
from engine.methods.shared.draft_model import STOP, DraftModelDrafter
from engine.methods.shared.learning_pace import LEARNING, LearningDraft
from engine.methods.shared.private_draft import PrivateDraft


class OnlineDrafter(LearningDraft, DraftModelDrafter):
    key = "online"
    title = "Online speculative decoding"
    family, shape = "chain", "chain"
    summary = "Your own copy of the draft model learns from its refused tokens while it drafts."
    options = (whole("length", 4, 1, 32).meaning("Most tokens drafted in a step."), *LEARNING, STOP)
    trial = {"length": 2, "milliseconds": 0.0, "every": 2, "rate": 0.05}

    @classmethod
    def build(cls, settings, models):
        drafter = super().build(settings, models)
        drafter._remember_pair(models, drafter.draft.name)
        return drafter

    def begin(self, start):
        super().begin(start)
        rate = self.settings["rate"]
        key = (self.key, *self._pair, rate)
        private = start.memory.store(key, lambda: PrivateDraft(self.draft, rate))
        self._begin_learning(private, start.prompt)

    def propose(self, context, max_depth):
        self._learn()
        self._passage.tokens = list(context)
        return self._chain(context, min(self.settings["length"], max_depth), self._likely)

    def observe(self, kept: Kept):
        super().observe(kept)
        tree, private = kept.tree, self._private
        self._passage.tokens += [tree.tokens[node] for node in kept.path]
        if (law := self._refusal(kept)) is not None:
            private.failed(self._passage, len(self._passage.tokens), law)
        if len(private.history.points) > 1:
            tree.exhibits.append(Later(self._shown_history))
        tree.exhibits.append(Later(self._shown_learning))

    def _shown_history(self) -> Curve:
        history = self._private.history
        places = [history.width * (place + 1) for place in range(len(history.points))]
        title = "Drafted tokens kept since you began"
        note = f"Each point is the share kept of {history.width} judged tokens, over all of your texts."
        series = [Series("kept", list(history.points))]
        return Curve(
            title, places, series, x_label="drafted tokens judged", y_label="share kept", note=note
        )

    def _shown_learning(self) -> Table:
        private = self._private
        rows = [
            ["refusals to learn from, over all of your texts", private.failures],
            ["updates of your copy of the draft", private.version],
            ["milliseconds of learning in this text", round(self._pace.learned, 1)],
            ["kilobytes that your copy and its examples take", round(private.nbytes / 1000)],
        ]
        return Table("What your copy of the draft has learned from", ["", "value"], rows)
