"""A draft model writes the next few tokens, one after another.

Leviathan et al., Fast Inference from Transformers via Speculative Decoding (2023);
Chen et al., Accelerating Large Language Model Decoding with Speculative Sampling (2023).
"""

from engine.drafters.draft_model import DraftModelDrafter, stop_option
from engine.options import Option
from engine.sampling import pick, uniforms
from engine.tree import ROOT, DraftTree


class ChainDrafter(DraftModelDrafter):
    key = "chain"
    title = "Chain"
    family = "chain"
    summary = "A small draft model writes a few tokens ahead, one after another."
    options = (
        Option("length", "int", 0, "Most tokens drafted in a step (0: what pays here).", 0, 32),
        stop_option(
            0.25,
            "draft no further when all so far is kept with less chance than this, by q; on a GPU "
            "never, for there the whole chain is drafted in one go",
        ),
    )
    size_option, usual_size = "length", 4

    @classmethod
    def kinds(cls, sampling):
        return frozenset({"one_hot" if sampling.greedy else "iid"})

    def begin(self, prompt, sampling, generator, features):
        super().begin(prompt, sampling, generator, features)
        waits = self.draft.slots is not None  # for a GPU, to see q
        self._stop_below = self.settings["stop_below"] if sampling.greedy and not waits else 0.0

    def propose(self, context, max_depth):
        tree, parent = DraftTree(), ROOT
        length = min(self.settings["length"], max_depth)
        drawn = None if self.sampling.greedy else uniforms(self.generator, length)
        q, chance = self._reader.read(context), 1.0
        for depth in range(1, length + 1):
            kind, token = self._pick(q, None if drawn is None else drawn[depth - 1])
            parent = tree.child(parent, kind, token, "draft model", q)
            chance *= tree.q[parent]
            if depth == length or chance < self._stop_below:
                break
            q = self._reader.expand([parent], tree.tokens[-1:], tree.parents[-1:])[0]
        return tree

    def _pick(self, q, drawn):
        if drawn is None:
            return "one_hot", int(q.argmax())
        return "iid", int(pick(q, drawn))
