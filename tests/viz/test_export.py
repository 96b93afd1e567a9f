"""python -m viz writes one file, or prints one line and exits with code 2."""

import json
import subprocess
import sys

import pytest

from tests.viz.builder import Toy
from tests.viz.hostile import HOSTILE
from viz.__main__ import main
from viz.export import embedded, page


def test_it_writes_one_file(tmp_path):
    source, target = tmp_path / "run.ndjson", tmp_path / "out.html"
    source.write_text(Toy(steps=3).ndjson(), "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "viz", str(source), "-o", str(target)],
        capture_output=True,
        check=False,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert target.read_text("utf-8").startswith("<!DOCTYPE html>")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out.html", "run.ndjson"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"hello\n",
        b"\xff\xfe\x00",
        b"{}\n",
        Toy(steps=2).ndjson().encode()[:-900],
        b"[1]\n" * 3,
    ],
)
def test_a_broken_trace_is_one_line_and_no_file(tmp_path, capsys, content):
    source, target = tmp_path / "run.ndjson", tmp_path / "out.html"
    source.write_bytes(content)
    assert main([str(source), "-o", str(target)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not target.exists()


def test_a_missing_trace_and_a_missing_folder(tmp_path, capsys):
    assert main([str(tmp_path / "no.ndjson"), "-o", str(tmp_path / "out.html")]) == 2
    source = tmp_path / "run.ndjson"
    source.write_text(Toy(steps=2).ndjson(), "utf-8")
    assert main([str(source), "-o", str(tmp_path / "no" / "out.html")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2
    assert [file.name for file in tmp_path.iterdir()] == ["run.ndjson"]


def test_nothing_of_the_trace_is_markup():
    text = Toy(steps=2, words=list(HOSTILE), prompt=" ".join(HOSTILE)).ndjson()
    written = page(text, HOSTILE[3])
    assert written.count("<script") == 2 and written.count("</script") == 2
    inside = embedded(text)
    assert not set("<>&") & set(inside) and inside.isascii()
    assert json.loads(inside) == text
    assert "unsafe" not in written.split("</head>")[0]
