"""Base class of drafters of chains whose draft model sees only a part of the target's picture.

The target sees the whole picture and verifies every token. So the patches that the draft model does not see can lower
the acceptance, but never change the text.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.core.drafter import Start
from engine.core.exhibits import Matrix
from engine.core.tree import DraftTree
from engine.methods.shared.draft_chain import DraftChain
from engine.model.captions import CaptionsModel, patch_grid

TITLE = "Patches that the draft sees"


@dataclass(frozen=True)
class SeenPart:
    """The draft model's input in place of the picture. The picture is replaced by rows, each an embedding that stands
    for one or more patches. model: the draft model with these rows. tokens: the tokens at the positions of these rows.
    weights: the weight of every patch in these rows; 0 if the patch is not seen."""

    model: CaptionsModel
    tokens: Sequence[int]
    weights: Sequence[float]


class PartSeenChain(DraftChain):
    """A chain drafter whose draft model sees a part of the picture. For a text without a picture, or with a draft model
    that takes no pictures, it drafts exactly as the drafter ``chain`` does."""

    about_pictures = True
    seen: SeenPart | None = None
    _target: CaptionsModel | None = None

    @classmethod
    def build(cls, settings, models):
        drafter, target = super().build(settings, models), models.target
        sees = isinstance(target, CaptionsModel) and isinstance(drafter.draft, CaptionsModel)
        if sees and target.pixels is not None:
            drafter._target, drafter._whole = target, drafter.draft
        return drafter

    def begin(self, start):
        if self._target is not None:
            self.seen = self.look(start)
            self.draft = self._whole if self.seen is None else self.seen.model
            start = replace(start, prompt=self._of_draft(start.prompt))
        super().begin(start)

    @abstractmethod
    def look(self, start: Start) -> SeenPart | None:
        """Return the part of the picture that the draft model sees; None if it sees no patch. Called only for a text
        with a picture."""

    def propose(self, context, max_depth):
        tree = super().propose(self._of_draft(context), max_depth)
        self._show(tree)
        return tree

    def _of_draft(self, context: Sequence[int]) -> Sequence[int]:
        """Return the text with the tokens of the draft model's rows for the picture in place of the target's patch
        tokens."""
        if self.seen is None:
            return context
        return [*self.seen.tokens, *context[len(self._target.patch_tokens) :]]

    def _show(self, tree: DraftTree) -> None:
        if self.seen is None:
            return
        grid = patch_grid(self._target, self.seen.weights)
        rows, columns = ([str(at + 1) for at in range(size)] for size in (len(grid), len(grid[0])))
        film = len(grid) != len(grid[0])
        rows = [f"frame {row}" for row in rows] if film else rows
        count, noun = sum(weight > 0 for weight in self.seen.weights), "film" if film else "picture"
        note = f"The draft reads {len(self.seen.tokens)} rows for the {noun}; {count} of {len(self.seen.weights)} patches stand in them."
        if film:
            note += " The patches of a frame stand in a line."
        tree.exhibits.append(Matrix(TITLE, rows, columns, grid, note=note))
