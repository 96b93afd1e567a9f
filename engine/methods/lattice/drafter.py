"""A walk through the lattice of a block: each position has its likeliest tokens as candidates, and a selector scores
these according to the token picked at the position before.

This is the candidate selector of DFlash2 (speculators 0.9, 2026), on a block drafter. The candidates of the whole block
are fixed before anything is drawn. So q, which is 0 for all other tokens, is the true law of every drafted token.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.core.exhibits import Choice, Later, Lattice
from engine.core.options import whole
from engine.core.sampling import display_distribution
from engine.methods.shared.block_drafter import DiffusionDrafter
from engine.methods.shared.block_walk import walk

SHOWN = 6  # candidates of a place that the exhibit shows


@dataclass
class Slots:
    """The positions of one block. candidates: int64 [L, C], the C likeliest tokens of each position according to the
    block drafter alone, the likeliest first. laws: for each position filled so far, q [C] over its candidates."""

    candidates: Tensor
    laws: list[Tensor] = field(default_factory=list)

    def shown(self, tokens: list[int]) -> Lattice:
        """Return a picture of the block: for each position its few likeliest candidates with their q, always including
        the picked one."""
        columns, path = [], []
        for names, law, token in zip(self.candidates.tolist(), self.laws, tokens, strict=True):
            row = names.index(token)
            rows = [*range(SHOWN - 1), row] if row >= SHOWN else range(min(SHOWN, len(names)))
            columns.append([Choice(names[candidate], float(law[candidate])) for candidate in rows])
            path.append(min(row, SHOWN - 1))
        departures = sum(row > 0 for row in path)
        note = f"Candidates stand in the order of the backbone, with q. The walk leaves its favourite at {departures} of {len(path)} places."
        return Lattice("Lattice and walk", columns, path, note=note)


class LatticeDrafter(DiffusionDrafter):
    key = "lattice"
    shape = "chain"
    title = "Walk through a block’s candidates, DFlash2"
    summary = (
        "A block’s likeliest tokens form a lattice; a selector walks through it from left to right."
    )
    draw_kinds = ("iid",)
    needs = {"diffusion": "denoiser", "lattice": "candidate_selector"}
    options = (
        whole("length", 0, 0, 31).meaning("Most tokens drafted in a step (0: the usual seven)."),
        whole("candidates", 16, 1, 64, "Candidates").meaning("Candidates of a place."),
    )
    size_option, usual_size = "length", 7
    trial = {"length": 2, "candidates": 3}

    def __init__(self, settings, drafter, target, selector) -> None:
        super().__init__(settings, drafter, target)
        self.selector = selector

    @classmethod
    def build(cls, settings, models):
        denoiser, selector = models.part("diffusion"), models.part("lattice")
        selector.check(denoiser, models.folders.get("diffusion"))
        return cls(settings, denoiser, models.target, selector)

    @torch.no_grad()
    def propose(self, context, max_depth):
        hidden, logits = self._reader.guesses(context[-1], self._length(max_depth))
        count = min(self.settings["candidates"], logits.shape[-1])
        alone, candidates = logits.topk(count, dim=-1)
        slots = Slots(candidates.cpu())

        def law(place: int, before: int) -> Tensor:
            before_id = torch.tensor(before, device=hidden.device)
            added = self.selector.transitions(hidden[place], before_id, candidates[place])
            scores = torch.full_like(logits[place], -torch.inf)
            scores[candidates[place]] = alone[place] + added
            whole_law = display_distribution(scores, self.sampling).cpu()
            slots.laws.append(whole_law[slots.candidates[place]])
            return whole_law

        tree = walk(context[-1], law, len(logits), self.sampling, self.chance)
        tokens = list(tree.tokens)
        tree.exhibits.append(Later(lambda: slots.shown(tokens)))
        return tree
