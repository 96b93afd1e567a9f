"""The deploy check passes this tree and finds each way in which a tree can be wrong."""

from pathlib import Path

import pytest

from tools import deploy_check, requirements
from tools.deploy_check import LARGE, ROOT, check, main

HEAD = """---
title: X
emoji: 🌳
colorFrom: blue
colorTo: indigo
sdk: gradio
sdk_version: 6.31.0
python_version: "3.12"
app_file: app.py
---
"""


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "README.md").write_text(HEAD, "utf-8")
    (tmp_path / "requirements.txt").write_text("# page\ngradio>=6.31,<7\n", "utf-8")
    (tmp_path / "app.py").write_text("", "utf-8")
    return tmp_path


def wrong(tree: Path) -> list[str]:
    return [finding.told for finding in check(tree, online=False) if finding.wrong]


def test_the_project_is_deployable(capsys):
    assert main(["--offline"]) == 0
    told = capsys.readouterr().out
    assert "Deployable." in told and "gradio 6" in told
    large = [p for p in deploy_check.files_of(ROOT) if p.stat().st_size > LARGE]
    assert large and all(str(path.relative_to(ROOT)) in told for path in large), "Xet is named"


def test_a_bare_tree_is_good(tree):
    assert wrong(tree) == []


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (HEAD, "# no front matter\n", "front matter"),
        ("sdk: gradio\n", "sdk: [\n", "front matter"),
        ("sdk: gradio", "sdk: flask", "SDK"),
        ("colorTo: indigo", "colorTo: mauve", "colorTo"),
        ("app_file: app.py", "app_file: main.py", "main.py"),
        ("sdk_version: 6.31.0", "sdk_version: 5.0.0", "requirements.txt"),
        ('python_version: "3.12"', 'python_version: "2.7"', "python_version"),
        ("emoji: 🌳\n", "", "emoji"),
        ("title: X", f"title: X\nshort_description: {'x' * 61}", "60 characters"),
    ],
)
def test_a_wrong_front_matter_is_told(tree, before, after, told):
    assert before in HEAD
    (tree / "README.md").write_text(HEAD.replace(before, after), "utf-8")
    (found,) = wrong(tree)
    assert told in found


def test_files_that_must_not_be_there_are_told(tree):
    (tree / "model.bin").write_bytes(b"\x80\x04.")
    (tree / "link").symlink_to(tree / "app.py")
    assert {line.split(" ")[0] for line in wrong(tree)} == {"model.bin", "link"}


def test_a_tree_that_is_too_large_is_told(tree, monkeypatch):
    monkeypatch.setattr(deploy_check, "MOST", 100)
    assert any("MB of at most" in line for line in wrong(tree))


def test_a_tree_without_the_app_is_told(tree):
    (tree / "app.py").unlink()
    assert any("no app.py" in line or "app_file" in line for line in wrong(tree))


@pytest.mark.exhaustive
def test_requirements_that_pip_refuses_are_told(tree):
    """The real pip is run; it stops at a line that it cannot read, before it asks any index."""
    (tree / "requirements.txt").write_text("gradio==!!\n", "utf-8")
    card = {"sdk_version": "6.31.0", "python_version": "3.12"}
    found = list(requirements.resolve(tree, card))
    assert len(found) == len(requirements.HARDWARE)
    assert all(bad and "cannot be met" in line and "!!" in line for bad, line in found)


def test_the_container_holds_what_the_page_needs_and_no_rights():
    lines = (ROOT / "Containerfile").read_text("utf-8").splitlines()
    copied = {line.split()[1] for line in lines if line.startswith("COPY")}
    assert {"app.py", "requirements.txt", "app", "engine", "viz", "presets"} == copied
    assert [line for line in lines if line.startswith("USER ")] == ["USER 1000:1000"]
    text = "\n".join(lines)
    for variable in (
        "GRADIO_TEMP_DIR",
        "DRAFTSCOPE_CACHE",
        "HF_HOME",
        "TMPDIR",
        "TORCHINDUCTOR_CACHE_DIR",
        "TRITON_CACHE_DIR",
    ):
        (value,) = [
            l.split("=")[1].split()[0] for l in lines if l.strip().startswith(f"{variable}=")
        ]
        assert value.startswith("/cache"), variable
    assert "ADD " not in text
