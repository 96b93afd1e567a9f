"""The command line as a process: signals, closed streams, places for a trace, locales."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from engine.__main__ import main
from engine.cache_folder import cache_folder
from engine.cli.terminal import as_unicode
from engine.errors import UserError
from engine.model.session import Session
from engine.printable import one_line, printable
from engine.trace import Outlet, read_trace
from presets import family
from tests.grids import some

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [
    sys.executable,
    *["-m", "engine", "run", "--drafter", "none", "--prompt"],
    "Once upon a time",
]
SMALL = ["--target", family().parts["draft"], "--max-new-tokens", "3"]
PATIENCE = 300  # seconds, enough for a busy machine; no measure of speed


def start(*arguments: str, **settings) -> subprocess.Popen:
    settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **settings}
    return subprocess.Popen([*COMMAND, *arguments], cwd=ROOT, **settings)


def after_the_first_token(process: subprocess.Popen, number: int) -> None:
    assert process.stdout.read(1)
    process.send_signal(number)


@pytest.mark.parametrize(
    "number", some([signal.SIGINT, signal.SIGTERM, signal.SIGHUP], signal.SIGTERM.__eq__)
)
def test_a_signal_cancels_the_run_and_leaves_a_whole_trace(number, tmp_path):
    path = tmp_path / "t.ndjson"
    process = start(*SMALL[:2], "--max-new-tokens", "900", "--trace", str(path))
    after_the_first_token(process, number)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + number
    assert b"Traceback" not in said and b"stop: cancelled" in said
    assert [one.name for one in tmp_path.iterdir()] == ["t.ndjson"]
    summary = read_trace(path).summary
    assert summary["stop"] == "cancelled" and 0 < summary["steps"] < 900


def test_ctrl_c_while_models_load_is_no_traceback(tmp_path, monkeypatch, capsys):
    def load(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("engine.run.opened.load_models", load)
    code = main(["run", "--prompt", "a", "--drafter", "none", "--trace", str(tmp_path / "t")])
    assert code == 130 and capsys.readouterr().err == "cancelled\n"
    assert not list(tmp_path.iterdir())


def test_ctrl_c_while_the_prompt_is_read_is_no_traceback(tmp_path, monkeypatch, capsys):
    """A second one, that is; this drafter has something to put away once it has begun."""

    def prefill(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "prefill", prefill)
    trace = ["--trace", str(tmp_path / "t")]
    code = main(["run", "--prompt", "a b", "--drafter", "suffix", *trace])
    assert code == 130 and "cancelled" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.exhaustive
def test_a_reader_that_goes_away_cancels_the_run(tmp_path):
    path = tmp_path / "t.ndjson"
    process = start("--max-new-tokens", "900", "--trace", str(path))
    assert process.stdout.read(1)
    process.stdout.close()
    process.stdout = None
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0 and b"Traceback" not in said and b"Broken" not in said
    assert read_trace(path).summary["stop"] == "cancelled"


def test_a_full_standard_output_is_no_traceback(tmp_path, monkeypatch, capsys):
    """Nor when the stream is closed, which writes once more what could not be written."""
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        code = main([*COMMAND[3:], *SMALL, "--trace", str(tmp_path / "t.ndjson")])
    told = capsys.readouterr().err
    assert code == 2 and told.startswith("error: Standard output") and told.count("\n") == 1


@pytest.mark.exhaustive
@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-", "> /dev/full"])
def test_a_closed_or_full_standard_output_of_a_process_is_no_traceback(closed, tmp_path):
    line = " ".join(f"'{word}'" for word in [*COMMAND, *SMALL])
    path = tmp_path / "t.ndjson"
    done = subprocess.run(
        ["bash", "-c", f"{line} --trace {path} {closed}"],
        cwd=ROOT, capture_output=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert b"Traceback" not in done.stderr and b"Exception" not in done.stderr
    if "full" in closed:
        assert done.returncode == 2 and done.stderr.count(b"\n") == 1
    else:
        assert done.returncode == 0 and read_trace(path).summary["new_tokens"] == 3


@pytest.mark.exhaustive
def test_a_prompt_in_another_locale_is_the_same_prompt(tmp_path):
    path = tmp_path / "t.ndjson"
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [*COMMAND[:-1], "Zoë saw a ☃", "--max-new-tokens", "2", "--trace", str(path)]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **plain}, capture_output=True, timeout=PATIENCE,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert read_trace(path).run["prompt"]["text"] == "Zoë saw a ☃"
    assert as_unicode("Zoë") == "Zoë"


@pytest.mark.parametrize("place", ["", ".", "folder", "nowhere/t", "loop"])
def test_a_trace_that_cannot_be_written_is_refused_before_the_run(
    place, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("folder")
    opened = []
    monkeypatch.setattr("engine.run.opened.load_models", lambda *_: opened.append(1))
    code = main(["run", "--prompt", "a", "--drafter", "none", "--trace", place])
    said = capsys.readouterr()
    assert (code, said.out, opened) == (2, "", [])
    assert said.err.startswith("error: ") and said.err.count("\n") == 1


def test_a_link_stays_a_link(tmp_path):
    real, link = tmp_path / "real.ndjson", tmp_path / "link.ndjson"
    real.write_text("old")
    link.symlink_to(real)
    Outlet(link).write(["new\n"])
    assert link.is_symlink() and real.read_text() == "new\n"


def test_a_pipe_is_written_through(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    Outlet(pipe).write(["a\n", "b\n"])
    reader.join(PATIENCE)
    assert read == ["a\nb\n"] and pipe.is_fifo()
    assert [one.name for one in tmp_path.iterdir()] == ["pipe"]


def test_what_fails_amid_writing_leaves_nothing(tmp_path):
    def lines():
        yield "one\n"
        raise UserError("enough")

    with pytest.raises(UserError, match="enough"):
        Outlet(tmp_path / "t").write(lines())
    assert not list(tmp_path.iterdir())


def test_nothing_acts_on_a_terminal():
    hostile = "a\x1b[2Jb\x07\x9b31m\u202ec\r\n\td"
    assert printable(hostile) == "a⟨1b⟩[2Jb⟨07⟩⟨9b⟩31m⟨202e⟩c⟨0d⟩\n\td"
    assert one_line("a\nb\x1b c\u2028d") == "a b⟨1b⟩ c d"
    assert len(one_line("x" * 9000)) == 2000


@pytest.mark.exhaustive
def test_measuring_is_announced(tmp_path):
    """The first run on a machine measures costs; standard error says so beforehand."""
    command = [
        *(sys.executable, "-m", "engine", "run", "--drafter", "chain"),
        *("--prompt", "a b a b a", "--max-new-tokens", "2"),
    ]
    environment = {**os.environ, "DRAFTSCOPE_CACHE": str(tmp_path), "DRAFTSCOPE_MEASURE": "1"}
    compiled = cache_folder() / "compiled"  # kept, unlike what was measured
    compiled.mkdir(exist_ok=True)
    (tmp_path / "compiled").symlink_to(compiled)
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=True
    )  # fmt: skip
    assert "Measuring" in done.stderr


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
    for writings in range(1, 5):
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
