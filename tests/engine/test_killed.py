"""A process is killed without warning: the file that it was writing is complete, or as it was before."""

import signal
import subprocess
import sys

import pytest

from engine.trace import read_trace
from tests.engine.test_terminal import PATIENCE, ROOT, after_the_first_token, start

SIZE = 8 << 20
WRITER = f"""
import sys
from pathlib import Path
from engine.cache_folder import write_whole
for turn in range(10**9):
    write_whole(Path(sys.argv[1]), bytes([turn % 2]) * {SIZE})
    print(".", end="", flush=True)
"""


def test_a_file_of_the_cache_folder_is_whole(tmp_path):
    path = tmp_path / "costs.json"
    for writings in range(1, 8):
        command = [sys.executable, "-c", WRITER, str(path)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
        assert len(process.stdout.read(writings)) == writings
        process.kill()
        process.communicate(timeout=PATIENCE)
        content = path.read_bytes()
        assert len(content) == SIZE and content in (b"\0" * SIZE, b"\1" * SIZE)


@pytest.mark.exhaustive
def test_a_trace_that_was_being_written_leaves_the_one_before_as_it_was(tmp_path):
    path = tmp_path / "t.ndjson"
    path.write_text("as it was")
    killed = start("--max-new-tokens", "900", "--trace", str(path))
    after_the_first_token(killed, signal.SIGKILL)
    killed.communicate(timeout=PATIENCE)
    assert killed.returncode == -signal.SIGKILL and path.read_text() == "as it was"
    again = start("--max-new-tokens", "2", "--trace", str(path))
    again.communicate(timeout=PATIENCE)
    assert again.returncode == 0 and read_trace(path).summary["new_tokens"] == 2
