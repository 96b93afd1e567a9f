"""The chain drafter where nobody watches: its guesses stay on the device until they are judged."""

from engine.drafters.base import Drafter
from engine.drafters.chain import ChainDrafter
from engine.drafters.draft_model import CAPACITY
from engine.language_model import LanguageModel
from engine.sampling import Sampling, uniforms
from engine.tree import ROOT, DraftTree


def unwatched(drafter: Drafter, target: LanguageModel) -> Drafter:
    """What drafts in its place when no one records: itself, or a twin that proposes the same."""
    if type(drafter) is ChainDrafter and drafter.draft.slots:
        return DeviceChain(drafter)
    return drafter


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
        greedy = self.sampling.greedy
        drawn = None if greedy else uniforms(self.generator, length)
        ids, q = self._session.write(fresh, length, self._vocabulary, self.sampling, drawn)
        tree, parent = DraftTree(ids=ids), ROOT
        for place in range(length):
            kind, law = ("one_hot", None) if greedy else ("iid", q[place])
            parent = tree.child(parent, kind, -1, "draft model", law)
        return tree

    def observe(self, kept):
        drafted_rows = len(kept.tree) - 1  # the last token was not read
        before = self._session.rows - max(drafted_rows, 0)
        self._session.commit(range(before + min(len(kept.path), drafted_rows)))
