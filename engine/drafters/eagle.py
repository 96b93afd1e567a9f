"""Drafting from the target's own features: a small cell predicts the next ones, and its best guesses form a tree.

EAGLE (Li et al., 2024) drafts features, not tokens: the feature at a place and the token after it give the
next feature, and a head turns that feature into the next token's law. The cell reads the token because the feature
alone cannot tell which token was drawn. EAGLE-2 (2024) grows the tree by joint confidence and re-ranks it
(``engine.drafters.eagle_tree``). EAGLE-3 (2025) fuses three lower layers into the first state. Only the
part decides which of the three methods is used (``engine.parts.eagle_cell``); the recipes ``gto`` and ``fspad`` make
parts of the same kind.

After a step the target's features replace the drafted ones, so no error outlives the step.

Exactness: the nodes are picked by their probabilities and never drawn, so the tree is judged one-hot, even in
sampled texts; q ranks the nodes and is shown, but no rule uses it. (If tokens were drawn,
re-ranking would drop some of them, and the law of the others would not be q.)

Beyond the paper: a candidate that is not among the best N when its level is drafted is not read, because
nothing below it could be kept; the tree stays the same. In greedy decoding no further level is read once
its nodes are unlikely to be reached (``stop_below``; the paper's value is 0).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.drafters.base import Drafter, Kept, tree_size
from engine.drafters.draft_model import stop_option
from engine.drafters.eagle_reader import EagleReader
from engine.drafters.eagle_shown import Outcomes, shown_path, shown_tree
from engine.drafters.eagle_tree import Candidates
from engine.exhibits import Curve, Later
from engine.finite import refuse_nan
from engine.options import Option
from engine.tree import ROOT, DraftTree

SOURCE = "feature draft"


class EagleDrafter(Drafter):
    key = "eagle"
    title = "Feature draft, EAGLE"
    family = "heads"
    summary = (
        "A small cell predicts the target's next features; its most confident paths form a tree."
    )
    needs = {"eagle": "eagle"}
    options = (
        tree_size(256, "nodes"),
        Option("depth", "int", 6, "Longest branch.", 1, 16),
        Option(
            "top_k",
            "int",
            4,
            "Candidates below each node, and nodes of each level that the cell reads.",
            1,
            32,
            label="Width",
        ),
        stop_option(
            0.3,
            "Draft no further when the chance that any of the nodes to be read next is reached falls "
            "below this, by q",
        ),
    )
    size_option, usual_size = "nodes", 11
    trial = {"nodes": 5, "depth": 3, "top_k": 3}

    def __init__(self, settings, cell, target) -> None:
        super().__init__(settings)
        self.cell, self.target = cell, target
        self.feature_layers = cell.config.layers_of(target.layers)

    @classmethod
    def build(cls, settings, models):
        return cls(settings, models.part(next(iter(cls.needs))), models.target)

    @classmethod
    def kinds(cls, sampling):
        return frozenset({"one_hot"})

    def begin(self, start):
        super().begin(start)
        self._reader = EagleReader(
            self.cell, self.target, self.sampling, start.constraint, len(start.prompt)
        )
        self._reader.learn(start.features)
        self._outcomes = Outcomes()
        self._drafted: Drafted | None = None
        self._stop_below = self.settings["stop_below"] if self.sampling.greedy else 0.0

    def propose(self, context, max_depth):
        self._drafted = None
        state = self._reader.catch_up(context)
        if state is None:  # a prompt of one token: the target has read nothing yet
            return DraftTree()
        count = self.settings["nodes"]
        levels, width = min(self.settings["depth"], max_depth, count), self.settings["top_k"]
        found = drafted_below(self._reader, state, count, levels, width, self._stop_below)
        kept = sorted(found.candidates.best(count))
        tree, node_of = found.tree(kept)
        tree.exhibits += shown_tree(found.candidates, kept)
        found.node_of, self._drafted = node_of, found
        return tree

    def observe(self, kept):
        drafted, self._drafted = self._drafted, None  # the next step might not propose anything
        self._reader.learn(kept.features)
        if drafted is None:
            return
        self._outcomes.count(kept)
        path = Later(lambda: self._shown_path(kept, drafted))
        kept.tree.exhibits[:0] = [path, *self._outcomes.shown()]  # in front of the tables

    @torch.no_grad()
    def _shown_path(self, kept: Kept, drafted: Drafted) -> Curve:
        features = kept.features
        below = features[len(features) - 1 - len(kept.path) :]  # forced tokens stand before them
        places = [ROOT, *(drafted.place_of(node) for node in kept.path)]
        return shown_path(kept, places, drafted.states, self._reader.fuse(below))

    def passes(self):
        return {"eagle": self._reader.passes}


def drafted_below(
    reader: EagleReader, state: Tensor, count: int, levels: int, width: int, stop_below: float = 0.0
) -> Drafted:
    """Draft all candidates that a tree of ``count`` nodes and ``levels`` levels may keep, below a state [H]; see
    the drafter's options."""
    width = min(width, count)
    found = Drafted(state)
    candidates, level, states = found.candidates, [ROOT], state[None]
    for depth in range(levels):
        laws = reader.law(states, [candidates.path(place) for place in level])
        chances, tokens = laws.topk(min(width, laws.shape[-1]))
        refuse_nan(chances, "The feature drafter")
        found.laws |= zip(level, laws.cpu(), strict=True)
        candidates.add(level, tokens.tolist(), chances.tolist())
        if depth + 1 == levels:
            break
        above = level
        level = candidates.worth_reading(width, count)
        if sum(candidates.joint[place] for place in level) < stop_below or not level:
            break
        rows = [above.index(candidates.parents[place]) for place in level]
        seen = candidates.seen_by(level)
        given = [candidates.tokens[place] for place in level]
        states = reader.grow(states[rows], given, depth, seen)
        candidates.read += level
        found.states |= zip(level, states, strict=True)
    return found


class Drafted:
    """A step's candidates. laws: q [V] after each place whose children were drafted. states: the drafted state [H] at
    each candidate that was read, and at the text's last token (ROOT)."""

    def __init__(self, state: Tensor) -> None:
        self.candidates = Candidates()
        self.laws: dict[int, Tensor] = {}
        self.states: dict[int, Tensor] = {ROOT: state}
        self.node_of: dict[int, int] = {}

    def tree(self, kept: Sequence[int]) -> tuple[DraftTree, dict[int, int]]:
        """The tree of the kept candidates, and each candidate's node."""
        tree, node_of, found = DraftTree(), {ROOT: ROOT}, self.candidates
        for place in kept:
            parent = found.parents[place]
            node_of[place] = tree.draw(
                node_of[parent],
                found.tokens[place],
                "one_hot",
                self.laws[parent],
                SOURCE,
                found.own[place],
            )
        return tree, node_of

    def place_of(self, node: int) -> int:
        """The candidate that became a node."""
        return next(place for place, one in self.node_of.items() if one == node)
