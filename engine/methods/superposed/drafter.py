"""A draft tree of k chains for as many passes of the draft model as one chain takes: the model's inputs are mixtures of
tokens (``engine.methods.shared.superposition``)."""

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.core.drafter import Drafter
from engine.core.exhibits import Table, Token
from engine.core.finite import refuse_nan
from engine.core.options import whole
from engine.core.sampling import display_distribution
from engine.core.tree import DraftTree
from engine.methods.shared.superposition import OPTIONS, Superposition
from engine.model.cache import CAPACITY
from engine.model.layers import EVERY


class SuperposedDrafter(Drafter):
    """The paper writes whole texts by superposed decoding, which is lossy. Here superposed decoding only writes the
    draft, and nothing is lost: the chains are chosen without random draws, and the target judges every token of them.
    This use is not the paper's."""

    key = "superposed"
    title = "Superposed chains"
    family = "tree"
    summary = "A draft model writes several chains with one row a level, from mixtures of tokens."
    draw_kinds = ("one_hot",)
    options = (whole("length", 4, 1, 16).meaning("Tokens of a chain."), *OPTIONS)
    needs = {"draft": "draft", "datastore": "datastore"}
    trial = {"length": 2, "texts": 2, "candidates": 4}

    def __init__(self, settings, models) -> None:
        super().__init__(settings)
        self._model, self._datastore = models.part("draft"), models.part("datastore")
        self._vocabulary = models.target.vocab_size
        self.max_context = self._model.max_context

    @classmethod
    def build(cls, settings, models):
        return cls(settings, models)

    @property
    def most_nodes(self):
        return self.settings["length"] * self.settings["texts"]

    def begin(self, start):
        super().begin(start)
        self._session = self._model.session(CAPACITY)
        self._passes = 0

    def propose(self, context, max_depth):
        tree, session = DraftTree(), self._session
        constraint = self.start.constraint
        logits = session.extend(context[session.length :])[: self._vocabulary]
        if constraint is not None:
            behind = len(self.start.prompt) + constraint.committed
            logits = constraint.applied(logits, tuple(context[behind:]))
        chains = Superposition(self.settings, self._datastore, context)
        self._passes += 1
        length = min(self.settings["length"], max_depth)
        for level in range(length):
            refuse_nan(logits[None], self._model.name)
            p = display_distribution(logits, self.sampling).cpu()
            for path, _ in chains.grow(p):
                tree.chain(path, "draft model", q=[None] * level + [float(p[path[-1]])])
            if level + 1 == length or not chains.texts:
                break
            lasts = self._model.readable([path[-1] for path, _ in chains.texts])
            mixed = chains.mixed(self._embedded(lasts))
            row = session.through(mixed, EVERY, [session.rows - 1], head=True)
            logits = row[0][: self._vocabulary]
            self._passes += 1
        session.drop()
        rows = [[Token(token) for token in path] for path, _ in chains.texts]
        columns = [f"token {depth}" for depth in range(1, length + 1)]
        note = "Each column after the first took one row, whose input is a mixture of the tokens before."
        tree.exhibits.append(Table("Chains of the last level", columns, rows, note=note))
        return tree

    def _embedded(self, tokens: Sequence[int]) -> Tensor:
        return self._model.embed(torch.tensor(tokens, device=self._model.device))

    def passes(self):
        return {"draft": self._passes}
