"""Draft and target work at the same time: the loop ``engine.core.overlapped``.

Liu et al., PEARL: Parallel Speculative Decoding with Adaptive Draft Length (2024).
"""

from engine.core.options import whole
from engine.methods.shared.draft_model import DraftModelDrafter


class PearlDrafter(DraftModelDrafter):
    """Writes ``length`` tokens behind a text whose end may not have been checked yet.

    It commits every token as soon as it has read it; after a refusal its session is rewound to the
    last kept token.
    """

    key = "pearl"
    title = "PEARL"
    family = "chain"
    summary = (
        "A small draft model goes on writing while the target checks: two lanes of work at once."
    )
    options = (
        whole("length", 0, 0, 32).meaning(
            "Tokens drafted during one pass of the target (0: the fastest size for this machine, measured)."
        ),
    )
    size_option, usual_size = "length", 4
    loop = "overlapped"
    reads_chains = True
    trial = {"length": 3}

    def propose(self, context, max_depth):
        tree = self._chain(context, min(self.settings["length"], max_depth))
        self._reader.keep(range(len(tree) - 1))  # read on as if all were kept; see observe
        return tree

    def observe(self, kept):
        if len(kept.tokens) > len(
            kept.path
        ):  # the last token is the target's: drafts end before it
            self._reader.rewind(kept.position + len(kept.path))
