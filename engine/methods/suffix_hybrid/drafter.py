"""Copy where the text repeats itself; elsewhere let a draft model write ahead.

The hybrid form of SuffixDecoding (Oliaro et al., NeurIPS 2025). At every step a suffix tree proposes copied tokens,
with a score: the expected number of these tokens that will be kept. If the score reaches a threshold, the copied tokens
are the step's draft. Otherwise another drafter drafts: here a small draft model writes a chain; in the paper it is
EAGLE-3. The draft model reads the copied tokens the next time that it drafts.
"""

from engine.core.drafter import Drafter
from engine.core.exhibits import Gauge
from engine.core.options import number, resolve, whole
from engine.methods.shared.draft_chain import DraftChain
from engine.methods.shared.suffix_copies import EARLIER_TEXTS, Branches, SuffixCopies, drafted


class SuffixHybridDrafter(Drafter):
    key = "suffix_hybrid"
    title = "Suffix decoding and draft model"
    family = "retrieval"
    summary = "Copies where the text repeats itself; elsewhere a draft model writes ahead."
    draw_kinds = (*SuffixCopies.draw_kinds, *DraftChain.draw_kinds)
    needs = DraftChain.needs
    learns = True
    reads_chains = True
    options = (
        DraftChain.options[0],
        number("threshold", 10.0, 0.0, 64.0, "Threshold").meaning(
            "Copied tokens are drafted where at least this many of them are expected to be kept."
        ),
        whole("copied", 12, 1, 64, "Copied tokens").meaning("Most tokens copied in a step."),
        number("factor", 2.0, 0.0, 8.0, "Trust", advanced=True).meaning(
            "Most copied tokens for each token that matches."
        ),
        EARLIER_TEXTS,
    )
    size_option, usual_size = DraftChain.size_option, DraftChain.usual_size
    trial = {"length": 2, "threshold": 1.0}

    def __init__(self, settings, copies: SuffixCopies, model: Drafter) -> None:
        super().__init__(settings)
        self._copies, self._model = copies, model
        self._copied = False  # whether the draft of this step is copied
        self.max_context = model.max_context

    @classmethod
    def build(cls, settings, models):
        drafting = resolve(cls.key, DraftChain.options, {"length": settings["length"]})
        return cls(settings, cls.copies(settings, models), DraftChain.build(drafting, models))

    @classmethod
    def copies(cls, settings, models) -> SuffixCopies:
        copying = {name: settings[name] for name in ("factor", "earlier_texts")}
        copying |= {"budget": settings["copied"], "offset": 0}
        return SuffixCopies.build(resolve(cls.key, SuffixCopies.options, copying), models)

    def begin(self, start):
        super().begin(start)
        self._copies.begin(start)
        self._model.begin(start)

    def propose(self, context, max_depth):
        best = self._copies.best(context, max_depth)
        self._copied = best is not None and best.score >= self.settings["threshold"]
        tree = drafted(best) if self._copied else self._model.propose(context, max_depth)
        tree.exhibits.append(self._shown(best))
        return tree

    def observe(self, kept):
        self._copies.observe(kept)
        if not self._copied:
            self._model.observe(kept)

    def passes(self):
        return self._model.passes()

    def close(self):
        self._copies.close()

    def _shown(self, best: Branches | None) -> Gauge:
        if best is None:
            note = "The end of the text stands nowhere before, so the draft model drafts."
        else:
            who = "they are drafted" if self._copied else "the draft model drafts"
            note = f"The last {best.match.length} tokens match; from the mark on, copies are drafted. Here {who}."
        return Gauge(
            "Copied tokens expected to be kept",
            0.0 if best is None else best.score,
            maximum=float(max(self.settings["copied"], self.settings["threshold"])),
            mark=self.settings["threshold"],
            unit="tokens",
            note=note,
        )
