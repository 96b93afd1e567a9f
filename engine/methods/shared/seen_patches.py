"""A chain by a draft model that sees a part of the target's picture. The target sees all of it and checks every token, so what
is left out costs acceptance and nothing else."""

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
    """The draft model's input in the place of the picture: the model with some rows for the picture, the tokens of
    these rows, and for every patch how much it weighs in them, 0 where it is not seen."""

    model: CaptionsModel
    tokens: Sequence[int]
    weights: Sequence[float]


class PartSeenChain(DraftChain):
    """On a text without a picture it is ``chain``; so it is where its draft model sees no pictures."""

    about_pictures = True
    seen: SeenPart | None = None
    _target: CaptionsModel | None = None

    @classmethod
    def build(cls, settings, models):
        made, target = super().build(settings, models), models.target
        sees = isinstance(target, CaptionsModel) and isinstance(made.draft, CaptionsModel)
        if sees and target.pixels is not None:
            made._target, made._whole = target, made.draft
        return made

    def begin(self, start):
        if self._target is not None:
            self.seen = self.look(start)
            self.draft = self._whole if self.seen is None else self.seen.model
            start = replace(start, prompt=self._of_draft(start.prompt))
        super().begin(start)

    @abstractmethod
    def look(self, start: Start) -> SeenPart | None:
        """Choose the patches that the draft model sees; None: none. Called only if there is a picture."""

    def propose(self, context, max_depth):
        tree = super().propose(self._of_draft(context), max_depth)
        self._show(tree)
        return tree

    def _of_draft(self, context: Sequence[int]) -> Sequence[int]:
        """The text as the draft model reads it."""
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
