"""Trains the cell of P-EAGLE from a trained EAGLE cell (the recipe ``eagle``, or --start).

A mask of the one layer of such a cell cannot look for anything in the text, because all masks ask the same; so the new cell has
more layers. It keeps the heads of attention and the units of the MLP that weigh most in the cell that it begins as, and its
further layers add nothing at first.

The loss is that of vLLM's speculators: the target's laws at the rows of the text and of the masks behind it, all of the same
weight, after a conditional drop (``engine.training.masked_rows``).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.core.options import Option, whole
from engine.errors import UserError
from engine.methods.shared.eagle_cell import EagleCell
from engine.methods.shared.eagle_layout import read_cell, write_cell
from engine.training.diffusion import mask_token
from engine.training.masked_rows import (
    MaskedRows,
    dropped,
    masked_accepted,
    masked_loss,
    row_sets,
)
from engine.training.student import Lesson, Student
from engine.training.students.cell_student import begun_by


class ParallelEagleStudent(Student):
    key = "parallel_eagle"
    summary = "an EAGLE cell (--start) that learns to draft all tokens in one pass"
    after = "eagle"
    options = (
        Option("tokens", "int", 8, "Tokens of a draft.", 2, 16),
        Option("layers", "int", 2, "Layers of the cell.", 1, 16),
        whole("heads", 4, 0, 256).meaning("Of attention (0: those of the cell it begins as)."),
        whole("inner", 208, 0, 1 << 16).meaning("Width of the MLP (0: that of the same cell)."),
    )
    read = staticmethod(read_cell)

    def __init__(self, target, settings, begun: EagleCell) -> None:
        super().__init__(target, settings)
        self._begun, self.mask = begun, 0
        self._embedding = target.get_input_embeddings()
        self._head = target.get_output_embeddings()

    @classmethod
    def of(cls, teacher, settings):
        made = begun_by(cls, teacher, settings, teacher.start or teacher.parts / cls.after)
        made.mask = mask_token(teacher)
        return made

    @property
    def logit_sets(self) -> int:
        return row_sets(self.settings["tokens"])

    @property
    def feature_layers(self) -> tuple[int, ...]:
        return self._begun.config.layers_of(self.config.num_hidden_layers)

    def start(self) -> EagleCell:
        if self._begun.pieces.masks:
            made = EagleCell(self._begun.config, self._begun.pieces)
            made.load_state_dict(self._begun.state_dict())
            return made
        sizes, wanted = self._begun.config, self.settings
        heads = wanted["heads"] or sizes.num_attention_heads
        inner = wanted["inner"] or sizes.intermediate_size
        made = widened(self._begun, wanted["layers"], heads, inner, self.mask)
        return made.beside(self.target)

    def loss(self, part: EagleCell, lesson: Lesson) -> Tensor:
        length = lesson.tokens.shape[1] - 1
        rows = dropped(length, self.settings["tokens"], lesson.index, lesson.tokens.device)
        states = self._read(part, lesson, rows)
        head = partial(self._logits, part)
        return masked_loss(rows, states, head, lesson.logits[:, 1:], lesson.counted[:, 1:])

    def accepted(self, part: EagleCell, lesson: Lesson) -> Tensor:
        """How many tokens of a chain of the likeliest tokens match the text, int64 [S, T]; the drafter's tree has more tokens."""

        def guess(rows: MaskedRows) -> Tensor:
            return self._logits(part, self._read(part, lesson, rows)).argmax(-1)

        length = lesson.tokens.shape[1] - 1
        found = masked_accepted(guess, lesson.tokens[:, 1:], length, self.settings["tokens"])
        return F.pad(found, (1, 0))

    def _read(self, part: EagleCell, lesson: Lesson, rows: MaskedRows) -> Tensor:
        """The states [S, R, H] of rows over the pairs of a feature and the token after it."""
        states = rows.filled(part.fuse(lesson.features[:, :-1]), part.mask_state()[0])
        mask = torch.tensor(part.config.mask_token, device=lesson.tokens.device)
        tokens = rows.filled(lesson.tokens[:, 1:], mask)
        embedded = part.embed(tokens, self._embedding).to(states.dtype)
        sees = rows.sees

        def attend(layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(
                queries, keys, values, attn_mask=sees, enable_gqa=True
            )

        return part(states, embedded, part.turn(rows.places), attend)

    def _logits(self, part: EagleCell, states: Tensor) -> Tensor:
        """[.., H] -> [.., V]"""
        return part.spread(part.logits(states, self._head), self.config.vocab_size)

    @torch.no_grad()
    def save(self, part: EagleCell, folder, about) -> None:
        write_cell(part, folder, about)


@torch.no_grad()
def widened(cell: EagleCell, layers: int, heads: int, inner: int, mask: int) -> EagleCell:
    """A cell with masks and more layers that computes nearly what this one does. heads: as many for each head of keys and
    values. Raises UserError for more heads or units than there are."""
    old = cell.config
    if not (heads <= old.num_attention_heads and inner <= old.intermediate_size):
        raise UserError(
            "The new cell can have no more heads and units than the one that it begins as."
        )
    if not heads or heads % old.num_key_value_heads:
        raise UserError(f"heads must be a multiple of {old.num_key_value_heads}.")
    shape = {"num_hidden_layers": layers, "num_attention_heads": heads, "intermediate_size": inner}
    made = EagleCell(replace(old, **shape, mask_token=mask), replace(cell.pieces, masks=True))
    taken = dict(cell.state_dict())
    front = "layers.0."
    kept = _heaviest_heads(taken[f"{front}self_attn.o_proj.weight"], old, heads)
    attention = f"{front}self_attn"
    for name in (f"{attention}.q_proj.weight", f"{attention}.q_proj.bias"):
        if name in taken:
            taken[name] = taken[name][kept]
    taken[f"{attention}.o_proj.weight"] = taken[f"{attention}.o_proj.weight"][:, kept]
    gate, up, down = (f"{front}mlp.{one}_proj.weight" for one in ("gate", "up", "down"))
    weight = taken[gate].norm(dim=1) * taken[up].norm(dim=1) * taken[down].norm(dim=0)
    units = weight.topk(inner).indices.sort().values
    taken |= {gate: taken[gate][units], up: taken[up][units], down: taken[down][:, units]}
    made.load_state_dict(taken, strict=False)
    for layer in made.layers[1:]:
        layer.self_attn.o_proj.weight.zero_()
        layer.mlp.down_proj.weight.zero_()
    return made


def _heaviest_heads(output: Tensor, config, heads: int) -> Tensor:
    """The numbers of the rows of the queries' projection that belong to the heads that weigh most, the same number for each head
    of keys. output: [H, heads * D]."""
    size, groups = config.head_dim, config.num_key_value_heads
    weights = output.unflatten(1, (groups, -1, size)).norm(dim=(0, 3))  # [groups, heads of each]
    best = weights.topk(heads // groups, dim=1).indices.sort(dim=1).values
    first = torch.arange(groups, device=best.device)[:, None] * weights.shape[1]
    return (
        (first + best).flatten()[:, None] * size + torch.arange(size, device=best.device)
    ).flatten()


STUDENT = ParallelEagleStudent
