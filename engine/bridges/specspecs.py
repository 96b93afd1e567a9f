"""Reads the drafts that the package specspecs logs as Parquet (its version 0.1.0), one row per step.

Columns used: ``draft_tokens`` (a list of token ids) and ``acceptance_length`` (how many of these were kept).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from engine.bridges.imported_line import counted, imported_line
from engine.bridges.step_counts import StepCounts
from engine.errors import UserError

DRAFTS = "drafts-*.parquet"
COLUMNS = ("draft_tokens", "acceptance_length")
MOST_ROWS, ROWS = 20_000_000, 65_536
"""Rows of all files together, and rows that are in memory at a time."""


def lines_of_parquet(files: Sequence[Path], name: str) -> list[dict]:
    """One ``acceptance`` line for all files of a log. Raises UserError, one sentence, for files of another format, and
    if pyarrow is not installed."""
    try:
        from pyarrow import ArrowException, compute, parquet
    except ImportError:
        raise UserError(f"To read {name}, pyarrow is needed: pip install pyarrow.") from None
    counts, rows = StepCounts(), 0
    for path in files:
        try:
            with parquet.ParquetFile(path) as file:
                rows += file.metadata.num_rows
                if rows > MOST_ROWS:
                    raise UserError(f"{name} has more than {MOST_ROWS:,} rows.")
                if not {*COLUMNS} <= {*file.schema_arrow.names}:
                    raise UserError(
                        f"{path.name} is no log of specspecs: it lacks {' or '.join(COLUMNS)}."
                    )
                for batch in file.iter_batches(ROWS, columns=list(COLUMNS)):
                    drafted = compute.list_value_length(batch.column(COLUMNS[0])).to_pylist()
                    kept = batch.column(COLUMNS[1]).to_pylist()
                    for pair in zip(drafted, kept, strict=True):
                        counts.add(*pair)
        except (ArrowException, OSError) as error:
            raise UserError(
                f"{path.name} cannot be read as Parquet: {_first_line(error)}."
            ) from None
        except ValueError as error:
            raise UserError(f"{path.name} is no log of specspecs: {error}.") from None
    if not counts.total:
        raise UserError(f"{name} holds no draft.")
    return [imported_line("specspecs", name, **counted(counts))]


def _first_line(error: Exception) -> str:
    return str(error).split("\n")[0].rstrip(".")[:120]
