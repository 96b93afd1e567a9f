"""The chain drafter where nobody watches: its guesses stay on the device until they are judged."""

from torch import Tensor

from engine.drafters.base import Drafter
from engine.drafters.chain import ChainDrafter
from engine.drafters.draft_model import CAPACITY
from engine.language_model import LanguageModel
from engine.sampling import uniforms
from engine.tree import ROOT, DraftTree


class DeviceChain(Drafter):
    """ChainDrafter with the whole chain as one captured graph.

    A sampled chain takes its uniforms along, from the drafter's own stream: one a token, as the
    host would have drawn them. Its q stay on the device, where the verdict needs them.
    """

    key, family, summary = ChainDrafter.key, ChainDrafter.family, ChainDrafter.summary
    options = ChainDrafter.options
    kinds = ChainDrafter.kinds

    def __init__(self, drafter: ChainDrafter) -> None:
        super().__init__(drafter.settings)
        self.max_context = drafter.max_context
        self._draft: LanguageModel = drafter.draft
        self._vocabulary = drafter.vocabulary

    def begin(self, prompt, sampling, generator, features):
        super().begin(prompt, sampling, generator, features)
        self._session = self._draft.session(CAPACITY)

    def propose(self, context, max_depth):
        length = min(self.settings["length"], max_depth)
        fresh = context[self._session.length :]
        drawn = None if self.sampling.greedy else uniforms(self.generator, length)
        ids, q = self._session.write(fresh, length, self._vocabulary, self.sampling, drawn)
        return chain_of(ids, q, "draft model")

    def observe(self, kept):
        drafted_rows = len(kept.tree) - 1  # the last token was not read
        before = self._session.rows - max(drafted_rows, 0)
        self._session.commit(range(before + min(len(kept.path), drafted_rows)))


def chain_of(ids: Tensor, q: Tensor | None, source: str) -> DraftTree:
    """One branch of these tokens, int32 [L], drawn from the rows of q [at least L, V] or from none."""
    tree, parent = DraftTree(ids=ids), ROOT
    for place in range(len(ids)):
        kind, law = ("one_hot", None) if q is None else ("iid", q[place])
        parent = tree.child(parent, kind, -1, source, law)
    return tree
