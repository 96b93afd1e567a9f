"""The process that writes the records: it receives parcels (the data of one step of a batch of requests) on standard
input, and writes one growing file per request.

Each line is written by a single write, so every file ends with a whole line even if a process is killed. Once the
folder's size limit is reached, all records are ended, and no new record is begun.
"""

from __future__ import annotations

import os
import pickle
import re
import sys
import time
import zlib
from contextlib import suppress
from itertools import accumulate
from pathlib import Path

from engine.serving.vllm.request_record import RequestRecord, Words

MOST_OPEN = 500
"""The most requests that are recorded at the same time; further requests are not recorded."""
MOST_RECORD = 8_000_000
"""The most bytes of one record, because Draftscope's page accepts no larger file."""


class RecordFolder:
    """The folder of the records, with those that are still growing. most: the most bytes of all records in the folder
    together."""

    def __init__(self, folder: str, most: int, about: dict, words: Words) -> None:
        self._folder, self._about, self._words = Path(folder), about, words
        self._room = most - sum(path.stat().st_size for path in self._folder.glob("*.ndjson"))
        self._open: dict[str, tuple[RequestRecord, int, list[int]]] = {}
        self._ends = 0  # bytes reserved for the summaries of all open records
        self._full = False

    def take(self, parcel: dict) -> None:
        """Add the steps in a parcel to the records of their requests."""
        for name in parcel["ended"]:
            self._close(name)
        for begun in parcel["begun"]:
            self._begin(begun)
        for name, step in steps_of(parcel):
            if name in self._open:
                record = self._open[name][0]
                end = record.end_bytes
                line = record.step(step)
                self._ends += record.end_bytes - end
                if line and self._write(name, line):
                    record.keep()
                elif line:
                    record.drop()
                    self._close(name)

    def close(self) -> None:
        for name in list(self._open):
            self._close(name)

    def _begin(self, begun: dict) -> None:
        if self._full or len(self._open) >= MOST_OPEN:
            return
        record = RequestRecord(begun, self._about, self._words)
        path = self._folder / file_name(begun["request"], begun["when"])
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        self._open[begun["request"]] = record, os.open(path, flags, 0o600), [0]
        self._ends += record.end_bytes
        if not self._write(begun["request"], record.run_line()):
            self._forget(begun["request"])
            path.unlink()

    def _write(self, name: str, line: str, last: bool = False) -> bool:
        """Write a line to a record. Returns False if the line was not written, because it would exceed a size limit,
        or because the disk is full. Room for the summaries of all open records always stays reserved. last: the line
        is one of these summaries."""
        record, file, size = self._open[name]
        data = line.encode("utf-8", "replace")
        reserved = 0 if last else self._ends + len(data)
        if not last and size[0] + len(data) + record.end_bytes > MOST_RECORD:
            return False
        if len(data) + reserved > self._room and not last:
            self._full = True
            self.close_all_but(name)
            return False
        try:
            whole = os.write(file, data) == len(data)
        except OSError:
            whole = False
        if not whole:  # the disk is full
            os.ftruncate(file, size[0])
            return False
        size[0] += len(data)
        self._room -= len(data)
        return True

    def close_all_but(self, name: str) -> None:
        for closing in [open_name for open_name in self._open if open_name != name]:
            self._close(closing)

    def _close(self, name: str) -> None:
        if name in self._open:
            self._write(name, self._open[name][0].summary_line(), last=True)
            self._forget(name)

    def _forget(self, name: str) -> None:
        record, file, _ = self._open.pop(name)
        self._ends -= record.end_bytes
        os.close(file)


def file_name(request: str, when: float) -> str:
    """A name for a record's file, made of the time and of those characters of the request's id that are safe in a file
    name, because a client can choose the id freely."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(when))
    plain = re.sub(r"[^A-Za-z0-9-]+", "-", request).strip("-")[:60]
    return f"{stamp}-{plain}-{zlib.crc32(f'{request} {when}'.encode()):08x}.ndjson"


def steps_of(parcel: dict):
    """Yields, for each recorded request of a parcel, the request's id and its share of the step's data. Yields nothing
    for a parcel without a step."""
    names = parcel.get("names", [])
    written = parcel["written"].tolist() if names else []
    counts = parcel.get("counts") or [0] * len(names)
    starts = [0, *accumulate(counts)]
    column = {key: parcel[key].tolist() for key in COLUMNS if parcel.get(key) is not None}
    rows = parcel.get("rows")
    places = {row: place for place, row in enumerate(rows)} if rows is not None else None
    for index, name in enumerate(names):
        if name is None:
            continue
        span = range(starts[index], starts[index] + counts[index])
        shown = [row if places is None else places.get(row) for row in span]
        yield (
            name,
            {
                "milliseconds": parcel["milliseconds"],
                "discarded": parcel["discarded"][index],
                "written": [token for token in written[index] if token >= 0],
                **{key: column[key][span.start : span.stop] for key in FLAT if key in column},
                **{
                    key: [None if at is None else column[key][at] for at in shown]
                    for key in SHOWN
                    if key in column
                },
            },
        )


FLAT = ("drafted", "q", "coins")
SHOWN = ("p", "top", "top_p", "top_q")
COLUMNS = (*FLAT, *SHOWN)


def main() -> None:
    os.nice(19)
    with suppress(AttributeError, OSError):  # Linux has a class below all priorities
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    source = sys.stdin.buffer
    folder, most, about = pickle.load(source)
    records = RecordFolder(folder, most, about, Words(*about["tokenizer"]))
    try:
        while True:
            records.take(pickle.load(source))
    except (EOFError, pickle.UnpicklingError):
        pass  # the worker has ended, perhaps within a parcel
    except Exception as error:  # noqa: BLE001 - the worker notes that nobody reads, and says so
        print(f"Draftscope's writer: {type(error).__name__}: {error}", file=sys.stderr)
    finally:
        records.close()


if __name__ == "__main__":
    main()
