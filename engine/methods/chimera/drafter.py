"""A light draft model: its lower layer encodes trigrams, and its upper layer attends to the target's own states.

Zeng et al., "Chimera: A Lossless Decoding Method for Accelerating Large Language Models Inference by Fusing all Tokens"
(2024). The tree is Medusa's. For each node, the trigram that ends with the node's token is encoded, and attends to the
target's states of the text and to the drafted states of the nodes above. The result is the node's drafted state. From
this state and the target's last true state, the readout for the node's depth gives the law of the children.
"""

from collections import OrderedDict
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.core.exhibits import Curve, Series, Table, Token
from engine.methods.chimera.part import GRAM, Columns
from engine.methods.shared.heads import HeadsDrafter
from engine.methods.shared.module_columns import ModuleColumns

MOST_TRIGRAMS = 4096  # trigrams whose rows are remembered
Path = tuple[int, ...]
"""The tokens after the last true state of the target, the root first."""


class ChimeraDrafter(HeadsDrafter):
    key = "chimera"
    title = "Chimera's trigrams and states"
    summary = "A light draft model reads trigrams at the bottom and the target's own states above."
    needs = {"chimera": "chimera_heads"}
    note = "Each row shows the choices of a readout after the tokens that were kept before its position."

    def begin(self, start):
        self._columns = ModuleColumns.of(1)
        self._rows: OrderedDict[tuple[int, ...], Tensor] = OrderedDict()  # of the latest trigrams
        self._encoded = 0  # trigrams of this text so far
        super().begin(start)

    @torch.no_grad()
    def _keep(self, features):
        if len(features):
            places = torch.arange(self._read, self._read + len(features), device=features.device)
            fresh = self.heads.encoder.columns(features, places)
            self._text: Columns = self._columns.append(0, *fresh)
        super()._keep(features)
        # the drafted state [H] at the end of each path, and its columns [Hkv, D]
        self._drafted: dict[Path, tuple[Tensor, Columns]] = {}

    def propose(self, context, max_depth):
        read = self._read
        first = [context[0]] * max(0, GRAM - 1 - read)  # stands in for tokens before the text
        self._before = (*first, *context[max(0, read - GRAM + 1) : read])
        self._unread = tuple(context[read:])
        return super().propose(context, max_depth)

    def _after(self, head, paths, count):
        paths = [tuple(path) for path in paths]
        for length in range(1, len(paths[0]) + 1):
            begun = dict.fromkeys(path[:length] for path in paths)
            self._draft([path for path in begun if path not in self._drafted])
        states = torch.stack([self._drafted[path][0] for path in paths])
        true = self._state.expand(len(paths), -1)
        return self._choices(self.heads.spoken(head, true, states), self.target.head, count)

    def _draft(self, paths: Sequence[Path]) -> None:
        """Draft the states at the ends of these paths, which have equal lengths. The states at the ends of all shorter
        parts of the paths must have been drafted already."""
        if not paths:
            return
        depth, encoder = len(paths[0]) - 1, self.heads.encoder
        places = torch.full((len(paths),), self._read + depth, device=self._state.device)
        line = [
            tuple(
                torch.stack(column, 1)
                for column in zip(*(self._drafted[path[:at]][1] for path in paths), strict=True)
            )
            for at in range(1, depth + 1)
        ]
        states = encoder(self._trigrams(paths), places, self._text, line=line)
        keys, values = encoder.columns(states, places)
        for at, path in enumerate(paths):
            self._drafted[path] = states[at], (keys[:, at], values[:, at])

    def _trigrams(self, paths: Sequence[Path]) -> Tensor:
        """Return the rows [R, H] of the trigrams with which these paths end. The row of a trigram that has not occurred
        before is computed and remembered."""
        grams = [self._gram(path) for path in paths]
        fresh = [gram for gram in dict.fromkeys(grams) if gram not in self._rows]
        if fresh:
            tokens = [self.target.readable(gram) for gram in fresh]
            embeddings = self.target.embed(torch.tensor(tokens, device=self.target.device))
            new_rows = self.heads.trigram(embeddings)
            self._rows |= {gram: row.clone() for gram, row in zip(fresh, new_rows, strict=True)}
            self._encoded += len(fresh)
        for gram in grams:
            self._rows.move_to_end(gram)
        rows = torch.stack([self._rows[gram] for gram in grams])
        while len(self._rows) > MOST_TRIGRAMS:
            self._rows.popitem(last=False)
        return rows

    def _gram(self, path: Path) -> tuple[int, ...]:
        return (*self._before, *path)[-GRAM:]

    def observe(self, kept):
        drafted, before = self._drafted, self._encoded
        if len(kept.tree):
            tokens = [kept.tree.tokens[node] for node in kept.path]
            ends = [(*self._unread, *tokens[:count]) for count in range(len(tokens) + 1)]
            true = kept.features[len(kept.features) - len(ends) :]
            near = [
                float(F.cosine_similarity(drafted[path][0], state, dim=0))
                if path in drafted
                else None
                for path, state in zip(ends, true, strict=True)
            ]
            kept.tree.exhibits += [self._path_table(ends, before), self._near(near)]
        super().observe(kept)

    def _path_table(self, ends: Sequence[Path], known: int) -> Table:
        rows = [[len(path), *map(Token, self._gram(path))] for path in ends]
        note = f"{known} trigrams of this text have been encoded so far; the latest are remembered."
        columns = ["behind the true states", "two before", "one before", "token"]
        return Table("Trigrams along the kept path", columns, rows, note=note)

    @staticmethod
    def _near(near: Sequence[float | None]) -> Curve:
        title = "Drafted states along the kept path"
        note = "0 is the last token of the text: its state, too, is drafted until the target has read the token."
        series = [Series("cosine to the true state", near)]
        return Curve(title, list(range(len(near))), series, x_label="tokens kept", note=note)
