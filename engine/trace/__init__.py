"""Traces as NDJSON: one run line, step lines, one summary line. This package exports the functions that read and write
traces; ``recording`` makes the lines."""

from engine.trace.reading import (
    MAX_BYTES,
    SCHEMA_PATH,
    LineReader,
    Trace,
    read_run_line,
    read_text,
    read_trace,
    to_line,
    to_step_line,
)
from engine.trace.writing import Outlet, write_lines

__all__ = [
    "MAX_BYTES",
    "SCHEMA_PATH",
    "LineReader",
    "Outlet",
    "Trace",
    "read_run_line",
    "read_text",
    "read_trace",
    "to_line",
    "to_step_line",
    "write_lines",
]
