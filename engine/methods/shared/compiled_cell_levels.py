"""Drafts several levels of an EAGLE chain in one call: each level is one token, the likeliest after the token of the
level before.

A level takes a pass of the cell and a product with the head. Calling these two graphs from Python costs about as much
time as their computation. So one graph holds several levels, with an argmax between one level and the next.

A pair is a state of the cell and the embedding of the token after it. Letters in shapes: G pairs of a call (padding
pairs come first), C columns of the KV buffers (one column per token), H hidden size, D head size, Hkv key/value heads,
N layers, v the size of the cell's own vocabulary.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from engine.fast.cpu.ahead import BLOCKS, AheadPass, AheadPasses, ahead_pass
from engine.fast.cpu.compiled_model import CompiledModel
from engine.fast.cpu.graph import attended
from engine.methods.shared.eagle_cell import EagleCell
from engine.model.language_model import LanguageModel

MOST_PAIRS = 8
"""The number of pairs in a call, padding included. Additional rows cost nearly nothing, so all graphs take this
many."""


class AheadGraph(nn.Module):
    """A graph that runs the cell over committed pairs and then drafts levels. count: the number of levels per call."""

    def __init__(self, cell: EagleCell, target: nn.Module, count: int) -> None:
        super().__init__()
        self._cell, self._count = cell, count
        self._embeddings = target.get_input_embeddings()
        self._head = target.get_output_embeddings()

    def forward(
        self, states: Tensor, embedded: Tensor, positions: Tensor, bias: Tensor, *columns: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Run the cell over the pairs, then draft. states, embedded: [G, H]. positions: [G]. bias: [G, C + G + count -
        1], added to the attention scores; each drafted level uses the last row of it, up to the level's own column.
        columns: keys and values of each layer, [1, Hkv, C, D].

        Returns four tensors. The first, second and last of them have a row for the last pair and for each drafted token
        except the last one: logits [count, v], the likeliest token [count], and states [count, H]. The third holds the
        keys and values [2 N, Hkv, G + count - 1, D] of all rows of the call.
        """
        known, before = list(columns), columns[0].shape[2]
        logits, likeliest, outputs = [], [], []
        width = before + states.shape[0]
        for level in range(self._count):
            states = self._read(states, embedded, positions, bias[:, : width + level], known)[-1:]
            logits.append(self._cell.logits(states, self._head))
            likeliest.append(self._cell.named(logits[-1].argmax(-1)))
            outputs.append(states)
            embedded = self._cell.embed(likeliest[-1], self._embeddings)
            positions, bias = positions[-1:] + 1, bias[-1:]
        fresh = torch.cat([column[:, :, before:] for column in known])
        return torch.cat(logits), torch.cat(likeliest), fresh, torch.cat(outputs)

    def _read(self, states, embedded, positions, bias, known: list[Tensor]) -> Tensor:
        """Run the cell over rows that attend to the columns ``known`` (keys and values of each layer) and to each
        other. Append the rows' own keys and values to ``known``."""

        def attend(layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
            for place, own in ((2 * layer, keys), (2 * layer + 1, values)):
                known[place] = torch.cat([known[place], own[None]], 2)
            return attended(queries[None], known[2 * layer], known[2 * layer + 1], bias)[0]

        return self._cell(states, embedded, self._cell.turn(positions), attend)


class CellAhead(AheadPasses):
    """All graphs of one cell for one target. No graphs are compiled for a cell without graphs of fixed sizes, for a
    cell that drafts all levels at once, and for a cell that may draft tokens without an embedding."""

    def __init__(self, cell: EagleCell, target: LanguageModel, sizes: Sequence[int]) -> None:
        super().__init__()
        self._cell, self._target = cell, target.model
        fits = bool(sizes) and isinstance(target, CompiledModel) and _reads_its_drafts(cell, target)
        fits = fits and not cell.pieces.masks  # such a cell drafts all levels at once
        self.blocks = BLOCKS if fits else ()

    def _compiled(self, count: int, capacity: int, features: tuple[int, ...]) -> AheadPass:
        cell, config = self._cell, self._cell.config
        columns = torch.zeros(1, config.num_key_value_heads, capacity, config.head_dim)
        pairs = torch.linspace(-1, 1, 2 * MOST_PAIRS * config.hidden_size).view(2, MOST_PAIRS, -1)
        rows, every = [*pairs, torch.arange(MOST_PAIRS)], [columns] * (2 * config.num_hidden_layers)
        graph, described = AheadGraph(cell, self._target, count), f"eagle {config} {cell.pieces}"
        return ahead_pass(graph, rows, every, count, f"{described} {count} levels ahead", True)


def _reads_its_drafts(cell: EagleCell, target: LanguageModel) -> bool:
    """Whether every token that the cell may draft is in the target's vocabulary and has an embedding."""
    readable = cell.config.vocab_size if cell.embed_tokens is not None else target.embeddings
    own = cell.lm_head is not None and not cell.pieces.own_vocabulary
    drafted = cell.lm_head.out_features if own else target.vocab_size
    return drafted == target.vocab_size <= readable
