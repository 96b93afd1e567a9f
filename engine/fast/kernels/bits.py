"""The rows that each row of a step sees, as bits: the mask that the attention kernel reads.

A step's scratch rows stand after the committed columns of the cache. Every row sees the whole
prefix and the scratch rows whose bits are set (its ancestors and itself).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.core.transfer import to_device

WORD = 32


@dataclass(frozen=True)
class AncestorBits:
    """The mask of R query rows over S scratch rows, for B sequences.

    words: int32 [B, R, ceil(S / 32)]; bit j of word w says whether the row sees scratch row 32 w + j.
    depths: int32 [B, S]; scratch row s is at position prefix + depths[s] of the text.
    prefix: int32 [B], the number of committed columns of each sequence.
    longest: the longest prefix, or an upper bound of it (for a captured graph, the capacity); only the plan that
    divides the work depends on this number.
    own: int32 [B, R], the depths of the query rows; None if the query rows are the last R scratch rows.
    """

    words: Tensor
    depths: Tensor
    prefix: Tensor
    longest: int
    own: Tensor | None = None

    @classmethod
    def of(cls, seen: Tensor, depths: Tensor, prefix: int, device=None) -> "AncestorBits":
        """The mask of a single sequence. seen: bool [R, S], whether a row sees a scratch row. depths: integers [S]."""
        return cls(
            words=pack(seen).unsqueeze(0).to(device),
            depths=depths.to(device=device, dtype=torch.int32).unsqueeze(0),
            prefix=torch.tensor([prefix], dtype=torch.int32, device=device),
            longest=prefix,
        )

    @classmethod
    def of_sets(
        cls, ancestors: list[int], depths: list[int], prefix: int, device=None
    ) -> "AncestorBits":
        """The mask of a single sequence. ancestors: one integer per row, whose bit s says that the row sees scratch row
        s.

        One copy brings all numbers to the device.
        """
        rows, scratch = len(ancestors), len(depths)
        words = max(1, -(-scratch // WORD))
        octets = b"".join(entry.to_bytes(4 * words, "little") for entry in ancestors)
        packed = torch.frombuffer(bytearray(octets), dtype=torch.int32)
        rest = torch.tensor([*depths, prefix], dtype=torch.int32)
        moved = to_device(torch.cat([packed, rest]), device)
        return cls(
            words=moved[: rows * words].view(1, rows, words),
            depths=moved[rows * words : -1].view(1, scratch),
            prefix=moved[-1:],
            longest=prefix,
        )

    @property
    def rows(self) -> int:
        return self.words.shape[1]

    @property
    def scratch(self) -> int:
        return self.depths.shape[1]

    @property
    def row_depths(self) -> Tensor:
        """int32 [B, R], the depths of the query rows."""
        return self.depths[:, self.scratch - self.rows :] if self.own is None else self.own


def pack(seen: Tensor) -> Tensor:
    """Pack a mask into bits: bool [..., S] -> int32 [..., ceil(S / 32)]. Bit j of word w is column 32 w + j."""
    columns = seen.shape[-1]
    words = max(1, -(-columns // WORD))
    padded = torch.zeros(*seen.shape[:-1], words * WORD, dtype=torch.int64, device=seen.device)
    padded[..., :columns] = seen
    weights = 1 << torch.arange(WORD, device=seen.device)
    packed = (padded.unflatten(-1, (words, WORD)) * weights).sum(-1)
    return torch.where(packed >= 1 << 31, packed - (1 << 32), packed).to(torch.int32)


def unpack(words: Tensor, columns: int) -> Tensor:
    """The inverse of ``pack``: int32 [..., words] -> bool [..., columns]."""
    shifts = torch.arange(WORD, device=words.device, dtype=torch.int32)
    return ((words[..., None] >> shifts) & 1).flatten(-2)[..., :columns].bool()
