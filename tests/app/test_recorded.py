"""The folder of recorded requests: its list on the real page, a record that grows, and what is refused."""

import json
import os
import time
from pathlib import Path

import pytest

from app import growing
from app.growing import Growing
from app.recorded import RecordedFolder
from app.settings import LIMITS, take_folders
from engine.errors import UserError
from engine.trace import read_trace
from presets import trace_text

LINES = trace_text("story-chain").splitlines(keepends=True)
RUN = json.loads(LINES[0]) | {
    "recorded": {
        "engine": "vLLM 0",
        "request": "cmpl-<b>1</b>",
        "began": "2026-11-28T05:00:00.000+00:00",
    }
}
RECORD = [json.dumps(RUN) + "\n", *LINES[1:]]


@pytest.mark.journey
def test_a_request_grows_on_the_page(host, arrive):
    record = Path(host.folder) / "records" / "one.ndjson"
    with record.open("w", encoding="utf-8", buffering=1) as file:
        file.writelines(RECORD[:3])
        visitor = arrive(host, "/", viewport={"width": 390, "height": 844})
        page, row = visitor.page, visitor.page.locator("#recorded tbody tr")
        row.wait_for()
        assert row.locator("button").inner_text() == "cmpl-<b>1</b>"
        row.locator("button").press("Enter")
        page.wait_for_function(
            "DraftscopePage.trace('watch').includes('recorded') && DraftscopePage.stateOf('watch') === 'running'"
        )
        for count in (4, 5):
            file.write(RECORD[count - 1])
            page.wait_for_function(
                f"DraftscopePage.trace('watch').trimEnd().split('\\n').length === {count}"
            )
        file.write(RECORD[5][:20])  # within a line
        page.wait_for_timeout(600)
        assert len(visitor.trace().splitlines()) == 5
        file.write(RECORD[5][20:])
        file.writelines(RECORD[6:])
        assert visitor.wait_state("done") == "done"
        assert read_trace(visitor.trace()) == read_trace("".join(RECORD))
        assert page.locator(".pg-cover").count() == 0
        assert not page.evaluate("DraftscopePage.ranHere('watch')")
        wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        assert page.evaluate(wide)
        page.wait_for_function(
            "steps => document.querySelector('#recorded tbody tr').cells[3].textContent === steps",
            arg=str(len(RECORD) - 2),
        )


def write(path, lines, age=0.0):
    path.write_text("".join(lines), "utf-8")
    os.utime(path, (time.time() - age,) * 2)


def shown(folder, name):
    return list(growing.show("session", "watch", folder.path, name))


@pytest.fixture
def records(tmp_path):
    return tmp_path, RecordedFolder(tmp_path)


def test_a_record_that_was_broken_off_opens_with_a_summary(records):
    path, folder = records
    write(path / "a.ndjson", RECORD[:5], age=growing.SILENT + 1)
    (row,) = folder.told()
    assert row["state"] == "broken off" and row["steps"] == 4
    ((text, state, said),) = shown(folder, "a.ndjson")
    assert state == "done" and growing.BROKEN_OFF in said
    whole, trace = read_trace("".join(RECORD)), read_trace(text)
    assert trace.steps == whole.steps[:4] and trace.summary["stop"] == "cancelled"
    job = Growing(path / "a.ndjson")
    assert read_trace(job.header() + job.summary()) == trace


def test_the_summary_of_all_lines_is_the_engines_own(records):
    path, _ = records
    write(path / "a.ndjson", RECORD[:-1])
    made = json.loads(Growing(path / "a.ndjson").summary())
    own = read_trace("".join(RECORD)).summary
    for name in own.keys() - {"stop", "milliseconds", "tokens_per_second"}:
        assert made[name] == own[name], name
    for stage in ("draft", "verify", "judge", "commit"):
        assert made["milliseconds"][stage] == pytest.approx(own["milliseconds"][stage], abs=0.01)


def test_hostile_files_are_left_out_or_refused(records):
    path, folder = records
    write(path / "broken.ndjson", [*RECORD[:3], '{"kind":"step"}\n'])
    write(path / "noise.ndjson", ["no trace\n"])
    write(path / "large.ndjson", RECORD[:1] + RECORD[1:2] * (LIMITS.trace_bytes // len(RECORD[1])))
    (path / "large.ndjson").open("a").write("x" * LIMITS.trace_bytes)
    (path / "bytes.ndjson").write_bytes(RECORD[0].encode() + b"\xff\xfe\n")
    (path / "link.ndjson").symlink_to("/etc/hostname")
    os.mkfifo(path / "pipe.ndjson")
    (path / "folder.ndjson").mkdir()
    names = {row["name"] for row in folder.told()}
    assert names == {"large.ndjson"}, "it may still be read on"
    for name, told in {
        "broken.ndjson": "does not fit the schema",
        "noise.ndjson": "is not valid JSON",
        "large.ndjson": "contradicts itself",
        "bytes.ndjson": "not UTF-8",
        **dict.fromkeys(
            [
                "link.ndjson",
                "pipe.ndjson",
                "folder.ndjson",
                "../a.ndjson",
                "/etc/hostname",
                "",
                None,
            ],
            "no longer here",
        ),
    }.items():
        ((text, state, said),) = shown(folder, name)
        assert (text, state) == (None, "error") and told in said, name


def test_a_folder_that_is_none_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("DRAFTSCOPE_WATCH", "")
    with pytest.raises(UserError, match="There is no folder .* to watch"):
        take_folders(["--watch", str(tmp_path / "nowhere")])
    with pytest.raises(UserError, match="takes --methods DIR and --watch DIR, and nothing else"):
        take_folders(["--watch"])
