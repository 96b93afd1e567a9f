"""The chain drafter for unrecorded texts on a GPU: its tokens stay on the device until they are judged."""

from torch.nn.functional import pad

from engine.core.drafter import Drafter
from engine.fast.gpu.device_tree import DeviceTree
from engine.fast.gpu.static_model import StaticModel
from engine.methods.chain.drafter import ChainDrafter
from engine.model.cache import CAPACITY
from engine.model.language_model import LanguageModel


class DeviceChain(Drafter):
    """Drafts as ChainDrafter does, with the whole chain in one captured graph.

    A sampled chain gets its uniforms in advance, one per token, from the drafter's own random stream, as the host would
    have drawn them. The laws q stay on the device, where they are needed to judge the tokens.
    """

    key, family, summary = ChainDrafter.key, ChainDrafter.family, ChainDrafter.summary
    options = ChainDrafter.options
    draw_kinds = ChainDrafter.draw_kinds

    def __init__(self, drafter: ChainDrafter) -> None:
        super().__init__(drafter.settings)
        self.max_context = drafter.max_context
        self._draft: LanguageModel = drafter.draft
        self._vocabulary = drafter.vocabulary

    def begin(self, start):
        super().begin(start)
        self._session = self._draft.session(CAPACITY)
        self._ahead = 0  # drafted tokens whose rows the draft model has read

    def propose(self, context, max_depth):
        length = min(self.settings["length"], max_depth)
        count = self._count(length, len(context))
        fresh = context[self._session.length :]
        drawn = None if self.sampling.greedy else self.chance.uniforms(length)
        if drawn is not None:
            drawn = pad(drawn, (0, count - length))
        ids, q = self._session.write(fresh, count, self._vocabulary, self.sampling, drawn)
        self._ahead = count - 1  # the last token was not read
        return DeviceTree.chain_of(ids[:length], q, "draft model")

    def _count(self, length: int, position: int) -> int:
        """Return how many tokens to draft if ``length`` are needed. While the context has room, the number is always
        that of the option, because a shorter chain at the end of a text would need a captured graph of its own."""
        longest = self.settings["length"]
        return longest if position + longest <= self.max_context else length

    def observe(self, kept):
        before = self._session.rows - self._ahead
        self._session.commit(range(before + min(len(kept.path), self._ahead)))
        self._ahead = 0


def device_twin(drafter: ChainDrafter) -> Drafter:
    return DeviceChain(drafter) if isinstance(drafter.draft, StaticModel) else drafter
