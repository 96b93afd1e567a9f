"""Trains the cell of P-EAGLE from a trained EAGLE cell (the part of the recipe ``eagle``, or --start).

In a cell of one layer, all masks make the same query, so what a mask attends to cannot depend on the text. So the new
cell has more layers. It keeps the attention heads and the MLP units that weigh most in the EAGLE cell, and its further
layers add nothing at first.

The loss is that of vLLM's speculators: the cell's laws are compared with the target's, with the same weight at the
tokens of the text and at the masks after them. To save time, some of the masks are left out at random (conditional
drop, ``engine.training.masked_rows``).

Letters in shapes: S windows, T tokens of each, R rows of a pass, H hidden size, D head size.
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
        student = begun_by(cls, teacher, settings, teacher.start or teacher.parts / cls.after)
        student.mask = mask_token(teacher)
        return student

    @property
    def logit_sets(self) -> int:
        return row_sets(self.settings["tokens"])

    @property
    def feature_layers(self) -> tuple[int, ...]:
        return self._begun.config.layers_of(self.config.num_hidden_layers)

    def start(self) -> EagleCell:
        if self._begun.pieces.masks:
            cell = EagleCell(self._begun.config, self._begun.pieces)
            cell.load_state_dict(self._begun.state_dict())
            return cell
        sizes, settings = self._begun.config, self.settings
        heads = settings["heads"] or sizes.num_attention_heads
        inner = settings["inner"] or sizes.intermediate_size
        cell = widened(self._begun, settings["layers"], heads, inner, self.mask)
        return cell.beside(self.target)

    def loss(self, part: EagleCell, lesson: Lesson) -> Tensor:
        length = lesson.tokens.shape[1] - 1
        rows = dropped(length, self.settings["tokens"], lesson.index, lesson.tokens.device)
        states = self._read(part, lesson, rows)
        head = partial(self._logits, part)
        return masked_loss(rows, states, head, lesson.logits[:, 1:], lesson.counted[:, 1:])

    def accepted(self, part: EagleCell, lesson: Lesson) -> Tensor:
        """Return, for each token as the root, how many tokens match the text if the likeliest token at each mask is
        drafted as a chain, int64 [S, T]. The drafter's tree has more tokens, so its accepted lengths are larger."""

        def guess(rows: MaskedRows) -> Tensor:
            return self._logits(part, self._read(part, lesson, rows)).argmax(-1)

        length = lesson.tokens.shape[1] - 1
        lengths = masked_accepted(guess, lesson.tokens[:, 1:], length, self.settings["tokens"])
        return F.pad(lengths, (1, 0))

    def _read(self, part: EagleCell, lesson: Lesson, rows: MaskedRows) -> Tensor:
        """Return the cell's states [S, R, H] at these rows. A row is the pair of a feature and the token after it, or
        the pair of the learned feature and a mask."""
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
        """Map states [.., H] to logits [.., V]."""
        return part.spread(part.logits(states, self._head), self.config.vocab_size)

    @torch.no_grad()
    def save(self, part: EagleCell, folder, about) -> None:
        write_cell(part, folder, about)


@torch.no_grad()
def widened(cell: EagleCell, layers: int, heads: int, inner: int, mask: int) -> EagleCell:
    """Return a cell with masks and more layers that computes nearly what this cell computes. heads: the number of
    attention heads, a multiple of the heads of keys and values. inner: the units of the MLP. Raises UserError if
    ``cell`` has fewer heads or units, or if ``heads`` is no such multiple."""
    old = cell.config
    if not (heads <= old.num_attention_heads and inner <= old.intermediate_size):
        raise UserError(
            "The new cell can have no more heads and units than the one that it begins as."
        )
    if not heads or heads % old.num_key_value_heads:
        raise UserError(f"heads must be a multiple of {old.num_key_value_heads}.")
    shape = {"num_hidden_layers": layers, "num_attention_heads": heads, "intermediate_size": inner}
    wide = EagleCell(replace(old, **shape, mask_token=mask), replace(cell.pieces, masks=True))
    weights = dict(cell.state_dict())
    front = "layers.0."
    head_rows = _heaviest_heads(weights[f"{front}self_attn.o_proj.weight"], old, heads)
    attention = f"{front}self_attn"
    for name in (f"{attention}.q_proj.weight", f"{attention}.q_proj.bias"):
        if name in weights:
            weights[name] = weights[name][head_rows]
    weights[f"{attention}.o_proj.weight"] = weights[f"{attention}.o_proj.weight"][:, head_rows]
    gate, up, down = (f"{front}mlp.{kind}_proj.weight" for kind in ("gate", "up", "down"))
    weight = weights[gate].norm(dim=1) * weights[up].norm(dim=1) * weights[down].norm(dim=0)
    units = weight.topk(inner).indices.sort().values
    weights |= {gate: weights[gate][units], up: weights[up][units], down: weights[down][:, units]}
    wide.load_state_dict(weights, strict=False)
    for layer in wide.layers[1:]:
        layer.self_attn.o_proj.weight.zero_()
        layer.mlp.down_proj.weight.zero_()
    return wide


def _heaviest_heads(output: Tensor, config, heads: int) -> Tensor:
    """Return the rows of the query projection that belong to the attention heads whose part of the output projection
    has the largest norm. ``heads`` heads are chosen, the same number for each key-value head. output: the output
    projection, [H, heads of the cell * D]."""
    size, groups = config.head_dim, config.num_key_value_heads
    weights = output.unflatten(1, (groups, -1, size)).norm(dim=(0, 3))  # [groups, heads of each]
    best = weights.topk(heads // groups, dim=1).indices.sort(dim=1).values
    first = torch.arange(groups, device=best.device)[:, None] * weights.shape[1]
    return (
        (first + best).flatten()[:, None] * size + torch.arange(size, device=best.device)
    ).flatten()


STUDENT = ParallelEagleStudent
