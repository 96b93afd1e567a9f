"""A chain whose draft model runs groups of layers in parallel, and is corrected once per step.

Wu et al., EasySpec: Layer-Parallel Speculative Decoding for Efficient Multi-GPU Utilization (2025). While drafting, all
layers of a group get the input of the group's first layer (``engine.model.fuzzy``), so they can run at the same time.
The errors of such fuzzy passes would add up in keys and values. So at the beginning of the next step the draft model
runs once more over the kept tokens and the target's own token, layer after layer. This exact pass gives the draft
model's true laws, and a comparison with the laws of the fuzzy passes shows the errors.

q is the law of the fuzzy pass that drew the token, so the text still has the target's distribution.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.core.exhibits import Later, Layer, Table, Token
from engine.core.exhibits import Layers as LayersExhibit
from engine.core.options import whole
from engine.methods.shared.draft_model import STOP, DraftModelDrafter, DraftReader
from engine.model.fuzzy import FuzzyModel, fuzzy


class FuzzyReader(DraftReader):
    """Runs the draft model over one text: over committed text layer after layer, over tree nodes in fuzzy passes.
    errors: for each node kept in the last step, half the L1 distance between the law after the node in the fuzzy pass
    and the true one."""

    def begin(self, model: FuzzyModel) -> None:
        self._fuzzy = model
        self._laws: dict[int, Tensor] = {}  # the fuzzy law after each node
        self._kept: list[Tensor] = []
        self.errors: list[float] = []

    def expand(self, nodes, tokens, parents):
        with self._fuzzy.together():
            q = super().expand(nodes, tokens, parents)
        self._laws |= dict(zip(nodes, q, strict=True))
        return q

    def keep(self, path: Sequence[int]) -> None:
        """Drop the keys and values of all nodes, because they come from fuzzy passes; remember the laws after the kept
        nodes."""
        self._kept = [self._laws[node] for node in path if node in self._laws]
        self._laws = {}
        self._session.drop()

    def _extended(self, tokens: Sequence[int]) -> Tensor:
        kept, self._kept, self.errors = self._kept, [], []
        if not kept:
            return super()._extended(tokens)
        logits, _ = self._session.feed(tokens, range(-1, len(tokens) - 1))
        self._session.commit(range(len(tokens)))
        if self._constraint is None:
            true = self._q(self._spread(logits[: len(kept)]))
            self.errors = (0.5 * (true - torch.stack(kept)).abs().sum(-1)).tolist()
        return logits[-1]


class EasySpecDrafter(DraftModelDrafter):
    key = "easyspec"
    title = "EasySpec"
    family, shape = "chain", "chain"
    reader_class = FuzzyReader
    summary = "A draft model runs groups of its layers on the same input; its memory is set right once a step."
    options = (
        whole("length", 4, 1, 32).meaning("Most tokens drafted in a step."),
        whole("group", 2, 1, 16, "Layers a group").meaning("Most layers that run in parallel."),
        STOP,
    )
    trial = {"length": 3, "group": 2}

    def __init__(self, settings, draft, vocabulary: int) -> None:
        super().__init__(settings, draft, vocabulary)
        self._fuzzy = fuzzy(draft, settings["group"])

    def begin(self, start):
        super().begin(start)
        self._drafted: list[int] = []  # kept tokens of the last step

    def _reading(self, model):
        reader = super()._reading(self._fuzzy.model)
        reader.begin(self._fuzzy)
        return reader

    def propose(self, context, max_depth):
        tree = self._chain(context, min(self.settings["length"], max_depth), self._likely)
        tree.exhibits.append(self._shown_groups())
        if errors := list(self._reader.errors):
            kept = self._drafted[: len(errors)]
            tree.exhibits.append(Later(lambda: shown_errors(kept, errors)))
        return tree

    def observe(self, kept):
        super().observe(kept)
        self._drafted = [kept.tree.tokens[node] for node in kept.path]

    def _shown_groups(self) -> LayersExhibit:
        groups = self._fuzzy.groups
        labels = {
            layer: f"group {number}: runs beside {len(group) - 1} other{'s' * (len(group) > 2)}"
            if len(group) > 1
            else "runs alone"
            for number, group in enumerate(groups, start=1)
            for layer in group
        }
        count = len(labels)
        note = f"While drafting, {count} layers take the time of {len(groups)} where all of a group run at once."
        layers = [Layer("run", label=labels[layer]) for layer in range(count)]
        return LayersExhibit("The draft model’s layers", layers, note=note)


def shown_errors(tokens: list[int], errors: list[float]) -> Table:
    note = (
        "Kept tokens of the step before, read again layer after layer: the distance of the fuzzy law behind each from the "
        "true one, 0 to 1."
    )
    rows = [[Token(token), round(error, 4)] for token, error in zip(tokens, errors, strict=True)]
    return Table("How far the fuzzy passes were off", ["behind", "distance"], rows, note=note)
