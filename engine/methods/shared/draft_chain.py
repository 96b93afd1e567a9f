"""A draft model writes the next few tokens, one after another.

Leviathan et al., Fast Inference from Transformers via Speculative Decoding (2023);
Chen et al., Accelerating Large Language Model Decoding with Speculative Sampling (2023).
"""

from torch import Tensor

from engine.core.options import choice, whole
from engine.core.tree import DraftTree
from engine.methods.shared.acceptance_estimator import AcceptanceEstimator, log_odds
from engine.methods.shared.draft_model import DraftModelDrafter, stop_option


class DraftChain(DraftModelDrafter):
    key = "chain"
    family, shape = "chain", "chain"
    options = (
        whole("length", 0, 0, 32).meaning(
            "Most tokens drafted in a step (0: the fastest size for this machine, measured)."
        ),
        stop_option(
            0.4,
            "Draft no further when the chance that everything so far is kept falls below this, by "
            "q; on a GPU never, because there the whole chain is drafted in one go",
        ),
        choice("chance", "q", ("q", "estimate"), "Chance told by", advanced=True).meaning(
            "What tells that chance: q of the drafted tokens, in greedy decoding; or what was kept of this text where the draft "
            "model was as sure, asked before each token is drawn, at any temperature (vLLM's estimator)."
        ),
    )
    size_option, usual_size = "length", 4
    _estimator: AcceptanceEstimator | None = None

    @classmethod
    def kinds(cls, sampling):
        return frozenset({"one_hot" if sampling.greedy else "iid"})

    reads_chains = True
    trial = {"length": 2}

    def begin(self, start):
        super().begin(start)
        if self.draft.asynchronous:
            self.stop_below = 0.0
        elif self.settings.get("chance") == "estimate":
            self.stop_below = self.settings["stop_below"]
            self._estimator = AcceptanceEstimator(self.settings["length"])

    def propose(self, context, max_depth):
        length = min(self.settings["length"], max_depth)
        if self._estimator is None:
            return self._chain(context, length, self._likely)
        return self._chain(context, length, follows=self._worth_drawing)

    def _worth_drawing(self, tree: DraftTree, q: Tensor) -> bool:
        """Return whether one more token should be drawn, from q [V]. It should if the estimated chance that all drafted
        tokens and this token are accepted is at least ``stop_below``. The estimate depends on the distributions, not on
        the tokens drawn from them."""
        chance = 1.0
        for place, law in enumerate([*tree.laws, q]):
            chance *= self._estimator.chance(log_odds(law), place)
        return chance >= self.stop_below

    def observe(self, kept):
        super().observe(kept)
        if self._estimator is not None:
            drafted = kept.tree.laws[: len(kept.tree)]
            self._estimator.see([log_odds(law) for law in drafted], len(kept.path))
