"""The arguments of a compiled pass as NumPy arrays, whose small operations cost less than torch's.

A row is one token position in a pass. A pass may have spare rows, whose results are ignored, to fill up its size.

Letters in shapes: R rows, P rows of the pass including spare ones (the spare ones come last unless a function says
otherwise), S scratch rows, C columns of the buffers.
"""

import numpy as np

from engine.model.row_mask import RowMask

HIDDEN = np.float32("-inf")


def padded(given: np.ndarray, shape: int) -> np.ndarray:
    """The array ``given`` [R, ...], filled up to [P, ...] with copies of its last row. shape: P."""
    spare = shape - len(given)
    return np.concatenate([given, given[-1:].repeat(spare, 0)]) if spare else given


def positions(mask: RowMask, shape: int) -> np.ndarray:
    """The rows' positions in the text, [P]; spare rows repeat the last position. shape: P."""
    depths = mask.depths
    return np.array(depths + depths[-1:] * (shape - len(depths)), np.int64) + mask.first


def bias(mask: RowMask, window: int | None, shape: int, capacity: int) -> np.ndarray:
    """The bias that a pass adds to its attention scores, [P, C + P]: 0 where a row sees a column, else minus infinity.

    The first C columns are the buffer's, the other P belong to the rows of the pass. shape: P. capacity: C."""
    rows = len(mask.ancestors)
    before = mask.scratch - rows  # scratch rows that earlier passes have read
    used = mask.committed + before
    added = _nothing_seen(rows, shape, capacity)
    every = (1 << mask.scratch) - 1
    if not mask.hides(window) and all(seen == every for seen in mask.ancestors):
        added[:rows, :used] = added[:rows, capacity : capacity + rows] = 0
        return added
    if mask.hides(window):
        seen = mask.within(window).numpy()
        np.copyto(added[:rows, :used], 0, where=seen[:, :used])
        own = seen[:, used:]
    else:
        scratch = _bits(mask.ancestors, mask.scratch)
        added[:rows, : mask.committed] = 0
        np.copyto(added[:rows, mask.committed : used], 0, where=scratch[:, :before])
        own = scratch[:, before:]
    np.copyto(added[:rows, capacity : capacity + rows], 0, where=own)
    return added


def all_seen(rows: int, used: int, capacity: int) -> np.ndarray:
    """The bias [R, C + R] for rows that all see the first ``used`` columns of the buffer and each other."""
    added = _nothing_seen(rows, rows, capacity)
    added[:, :used] = added[:, capacity:] = 0
    return added


def chain_bias(start: int, rows: int, shape: int, capacity: int) -> np.ndarray:
    """The bias [P, C + P] for a chain: each row sees the first ``start`` columns, the rows before it and itself."""
    added = _nothing_seen(rows, shape, capacity)
    added[:rows, :start] = 0
    np.copyto(added[:rows, capacity : capacity + rows], 0, where=np.tri(rows, dtype=bool))
    return added


def ahead_bias(start: int, spare: int, shape: int, capacity: int, count: int) -> np.ndarray:
    """The bias [P, C + P + count - 1] for a call that reads P rows and then ``count`` - 1 further rows one by one.

    Here the spare rows come first: the first ``spare`` of the P rows, each of which sees only itself. Every other row
    sees the first ``start`` columns, the rows before it and itself, but no spare row. The last row of the bias also
    serves the rows that are read one by one.
    """
    added = np.full((shape, capacity + shape + count - 1), HIDDEN)
    added[spare:, :start] = 0
    for row in range(shape):
        added[row, capacity + min(spare, row) : capacity + row + 1] = 0
    added[-1, capacity + shape :] = 0
    return added


def _nothing_seen(rows: int, shape: int, capacity: int) -> np.ndarray:
    """A bias [P, C + P] to begin with: the first ``rows`` rows see nothing, and each spare row after them sees
    itself."""
    added = np.full((shape, capacity + shape), HIDDEN)
    for row in range(rows, shape):
        added[row, capacity + row] = 0
    return added


def _bits(sets: list[int], size: int) -> np.ndarray:
    """Bit masks as a bool array [len(sets), size]; element [i, j] is bit j of sets[i]."""
    width = (size + 7) // 8
    packed = b"".join(entry.to_bytes(width, "little") for entry in sets)
    octets = np.frombuffer(packed, np.uint8).reshape(len(sets), width)
    return np.unpackbits(octets, axis=1, count=size, bitorder="little").view(bool)
