"""A drafter with an EAGLE cell: the cell predicts the target's next features, and its best guesses form a tree.

EAGLE (Li et al., 2024) drafts features, the hidden states of the target, instead of tokens. From the feature at a
position and the token after it the cell predicts the next feature, and a head turns this feature into the distribution
of the next token. The cell needs the token because the feature alone does not say which token was drawn. EAGLE-2 (2024)
grows the tree by joint confidence and re-ranks it (``engine.methods.shared.eagle_tree``). EAGLE-3 (2025) takes its
first state from three layers of the target. Which of the three methods is used depends only on the trained cell that is
opened (``engine.methods.shared.eagle_cell``). The training recipes ``gto`` and ``fspad`` also train such cells. A
multi-token-prediction layer drafts like an EAGLE cell (``mtp``).

After a step the target's features replace the drafted features, so an error of the cell never outlives the step.

Exactness: the nodes are picked by their probabilities and never drawn, so the tree is judged one-hot, even in sampled
texts. q ranks the nodes and is shown on the page, but no verification rule uses it. (If the tokens were drawn,
re-ranking would drop some of them, and q would not be the law of the tokens that stay.)

Beyond the paper: the cell is not run over a candidate that is not among the best N when its level is drafted, because
no descendant of it could be in the tree. This does not change the tree. In greedy decoding no further level is drafted
once the nodes of that level are unlikely to be reached (``stop_below``; the paper's value is 0). A tree of few nodes is
a chain: the cell then has one node per level, and on a CPU several levels are computed in one call.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.core.drafter import Drafter, Kept, tree_size
from engine.core.exhibits import Curve, Later
from engine.core.options import whole
from engine.core.tree import ROOT, DraftTree
from engine.methods.shared.cost_aware import COST_AWARE, StepCosts
from engine.methods.shared.draft_model import stop_option
from engine.methods.shared.eagle_context import context_of
from engine.methods.shared.eagle_reader import EagleReader
from engine.methods.shared.eagle_shown import Outcomes, shown_path, shown_tree
from engine.methods.shared.eagle_tree import Candidates
from engine.methods.shared.levels_ahead import Level


class CellTree(Drafter):
    family = "heads"
    draw_kinds = ("one_hot",)
    needs = {"eagle": "eagle"}
    options = (
        tree_size(256, "nodes"),
        whole("depth", 8, 1, 16).meaning("Longest branch."),
        whole("top_k", 0, 0, 32, "Width").meaning(
            "Candidates below each node, and nodes of each level that the cell reads (0: nodes divided by depth, as in "
            "the paper's trees of 60 nodes and 6 levels)."
        ),
        stop_option(
            0.1,
            "Draft no further when the chance that any of the nodes to be read next is reached falls "
            "below this, by q",
        ),
        COST_AWARE,
    )
    size_option, usual_size = "nodes", 11
    trial = {"nodes": 5, "depth": 3, "top_k": 3}

    def __init__(self, settings, cell, target) -> None:
        super().__init__(settings)
        self.cell, self.target = cell, target
        self.feature_layers = cell.config.layers_of(target.layers)
        self._drafted: Drafted | None = None

    costs: StepCosts | None = None
    """The measured costs by which the size of the tree is limited; None: the tree keeps all its nodes."""

    @classmethod
    def build(cls, settings, models):
        (role,) = cls.needs
        drafter = cls(settings, models.part(role), models.target)
        drafter.costs = StepCosts.of(settings, models)
        return drafter

    def expect(self, coming):
        context_of(self.cell, self.target).expect(coming)

    def begin(self, start):
        super().begin(start)
        self._open()
        self._outcomes = Outcomes()
        self._learn(start.features)
        usual = self.settings.get("stop_below", 0.0)
        self._stop_below = usual if self.sampling.greedy else 0.0

    def _open(self) -> None:
        """Make the reader of a new text."""
        start = self.start
        self._reader = EagleReader(
            self.cell, self.target, self.sampling, start.constraint, len(start.prompt)
        )

    def propose(self, context, max_depth):
        self._drafted = None
        count, depth = self.settings["nodes"], self.settings["depth"]
        levels, width = min(depth, max_depth, count), self.settings["top_k"] or -(-count // depth)
        level = self._reader.catch_up(context, levels if width == 1 else 1)
        if level is None:  # a prompt of one token: the target has read nothing yet
            return DraftTree()
        drafted = drafted_below(self._reader, level, count, levels, width, self._stop_below)
        return self._best(drafted, count)

    def _best(self, drafted: Drafted, count: int) -> DraftTree:
        """Return the tree of the ``count`` best candidates. If ``costs`` is set, the tree may have fewer nodes."""
        candidates = drafted.candidates
        best = candidates.best(count)
        shown = []
        if self.costs is not None:
            chances = [candidates.joint[place] for place in best]
            best = best[: self.costs.best(chances)]
            shown = [self.costs.shown(chances, len(best))]
        kept = sorted(best)
        tree, self._drafted = drafted.tree(kept), drafted
        tree.exhibits += [*shown_tree(candidates, kept), *shown]
        return tree

    def _learn(self, features: Tensor | None) -> None:
        """Pass the target's features [T, n*H] of the newly committed tokens to the reader."""
        self._reader.learn(features)

    def observe(self, kept):
        drafted, self._drafted = self._drafted, None  # the next step might not propose anything
        self._learn(kept.features)
        if drafted is None:
            return
        if self.costs is not None:
            self.costs.see(kept)
        self._outcomes.count(kept)
        path = Later(lambda: self._shown_path(kept, drafted))
        kept.tree.exhibits[:0] = [path, *self._outcomes.shown()]  # in front of the tables

    @torch.no_grad()
    def _shown_path(self, kept: Kept, drafted: Drafted) -> Curve:
        features = kept.features
        below = features[len(features) - 1 - len(kept.path) :]  # forced tokens stand before them
        places = [ROOT, *(drafted.place_of(node) for node in kept.path)]
        states = {place: drafted.state_of(place) for place in places}
        return shown_path(kept, places, states, self._fused(below))

    def _fused(self, features: Tensor) -> Tensor:
        """Return the cell's states [T, H] that follow from the target's features [T, n*H]. Drafted states are compared
        with these true states."""
        return self._reader.fuse(features)

    def passes(self):
        (role,) = self.needs
        return {role: self._reader.passes}


def drafted_below(
    reader: EagleReader, top: Level, count: int, levels: int, width: int, stop_below: float = 0.0
) -> Drafted:
    """Draft all candidates that may be in a tree of ``count`` nodes and ``levels`` levels.

    top: the cell's output at the text's last token. width: the number of candidates below each node, and the number of
    candidates of a level over which the cell is run. stop_below: stop before a level if the chance that any of its
    nodes is reached is smaller than this.
    """
    width = min(width, count)
    drafted = Drafted(top.states[0])
    candidates, read, places = drafted.candidates, top, [ROOT]
    for depth in range(levels):
        chances, tokens = read.q.topk(min(width, read.q.shape[-1]))
        drafted.laws |= zip(places, read.q, strict=True)
        candidates.add(places, tokens.tolist(), chances.tolist())
        if depth + 1 == levels:
            break
        above = places
        places = candidates.worth_reading(width, count)
        if sum(candidates.joint[place] for place in places) < stop_below or not places:
            break
        rows = [above.index(candidates.parents[place]) for place in places]
        seen = candidates.seen_by(places)
        inputs = [candidates.tokens[place] for place in places]
        paths = [candidates.path(place) for place in places]
        read = reader.grow(read.states[rows], inputs, depth, seen, paths)
        candidates.read += places
        drafted.states |= zip(places, read.states, strict=True)
    return drafted


class Drafted:
    """The candidates of a step. In the two dictionaries the key is a candidate's number, or ROOT for the text's last
    token. laws: key -> q [V] from which the children of this candidate were taken. states: key -> drafted state [H],
    for ROOT and each candidate over which the cell was run."""

    source = "feature draft"

    def __init__(self, state: Tensor) -> None:
        self.candidates = Candidates()
        self.laws: dict[int, Tensor] = {}
        self.states: dict[int, Tensor] = {ROOT: state}

    def state_of(self, place: int) -> Tensor | None:
        return self.states.get(place)

    def tree(self, kept: Sequence[int]) -> DraftTree:
        """Return the draft tree of the candidates whose numbers are ``kept``; parents must come before their
        children."""
        tree, candidates = DraftTree(), self.candidates
        self._node_of = {ROOT: ROOT}
        for place in kept:
            above = candidates.parents[place]
            token, own = candidates.tokens[place], candidates.own[place]
            law, parent = self.laws[above], self._node_of[above]
            self._node_of[place] = tree.draw(parent, token, "one_hot", law, self.source, own)
        return tree

    def place_of(self, node: int) -> int:
        """Return the number of the candidate that became this node of the tree."""
        return next(place for place, number in self._node_of.items() if number == node)
