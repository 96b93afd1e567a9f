"""A walk through the lattice of a block: at every place the likeliest tokens are candidates, and a selector scores them in the
light of the token picked before.

The candidate selector of DFlash2 (speculators 0.9, 2026), on a block drafter. The candidates are those of the whole block,
before anything is drawn, so q, which is 0 for all others, is the true law of every drafted token.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.core.exhibits import Choice, Later, Lattice
from engine.core.options import whole
from engine.core.sampling import display_distribution
from engine.methods.shared.block_drafter import DiffusionDrafter
from engine.methods.shared.block_walk import walk

SHOWN = 6  # candidates of a place in the picture


@dataclass
class Slots:
    """candidates: int64 [L, C], the likeliest of each place by the backbone alone, the likeliest first. laws: q [C] over them
    at the places so far."""

    candidates: Tensor
    laws: list[Tensor] = field(default_factory=list)

    def shown(self, tokens: list[int]) -> Lattice:
        """The few likeliest candidates of each place with their q, the picked one among them."""
        columns, path = [], []
        for names, law, token in zip(self.candidates.tolist(), self.laws, tokens, strict=True):
            row = names.index(token)
            rows = [*range(SHOWN - 1), row] if row >= SHOWN else range(min(SHOWN, len(names)))
            columns.append([Choice(names[one], float(law[one])) for one in rows])
            path.append(min(row, SHOWN - 1))
        left = sum(row > 0 for row in path)
        note = f"Candidates stand in the order of the backbone, with q. The walk leaves its favourite at {left} of {len(path)} places."
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
            given = torch.tensor(before, device=hidden.device)
            found = self.selector.transitions(hidden[place], given, candidates[place])
            scores = torch.full_like(logits[place], -torch.inf)
            scores[candidates[place]] = alone[place] + found
            whole_law = display_distribution(scores, self.sampling).cpu()
            slots.laws.append(whole_law[slots.candidates[place]])
            return whole_law

        tree = walk(context[-1], law, len(logits), self.sampling, self.chance)
        tokens = list(tree.tokens)
        tree.exhibits.append(Later(lambda: slots.shown(tokens)))
        return tree
