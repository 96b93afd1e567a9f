"""PEARL: draft and target work at the same time, in the loop ``engine.core.overlapped``.

Liu et al., PEARL: Parallel Speculative Decoding with Adaptive Draft Length (2024).
"""

from engine.core.options import whole
from engine.methods.shared.draft_model import DraftModelDrafter


class PearlDrafter(DraftModelDrafter):
    """Writes ``length`` tokens after a text whose last tokens may not have been checked yet.

    In the draft model's session, each drafted token is committed as soon as the draft model has run over it. After a
    refusal the session is rewound to the last kept token.
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
        self._reader.keep(range(len(tree) - 1))  # as if all tokens were kept; observe corrects this
        return tree

    def observe(self, kept):
        if (
            len(kept.tokens) > len(kept.path)
        ):  # the last token is the target's own, so the draft was kept only up to the token before it
            self._reader.rewind(kept.position + len(kept.path))
