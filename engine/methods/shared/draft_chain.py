"""A draft model writes the next few tokens, one after another.

Leviathan et al., Fast Inference from Transformers via Speculative Decoding (2023);
Chen et al., Accelerating Large Language Model Decoding with Speculative Sampling (2023).
"""

from engine.core.options import whole
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
    )
    size_option, usual_size = "length", 4

    @classmethod
    def kinds(cls, sampling):
        return frozenset({"one_hot" if sampling.greedy else "iid"})

    reads_chains = True
    trial = {"length": 2}

    def begin(self, start):
        super().begin(start)
        if self.draft.asynchronous:
            self.stop_below = 0.0

    def propose(self, context, max_depth):
        length = min(self.settings["length"], max_depth)
        return self._chain(context, length, self._likely)
