"""Asks pip whether it can meet the requirements as a Space would install them, without installing.

Pip resolves them for the Space's Python, with the packages that the Space's builder adds, and for ZeroGPU with the
newest torch there.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ADDED = ("gradio[oauth,mcp]=={sdk_version}", "spaces")
"""The packages that the builder of a Gradio Space adds."""
HARDWARE = {"CPU Basic or a GPU of one's own": (), "ZeroGPU": ("torch==2.11.*",)}
"""Kind of hardware -> the versions that it requires."""
GLIBC = range(36, 16, -1)
"""Minor versions of glibc: from 2.36, that of Debian 12, on which Spaces run, back to 2.17, the oldest in the names of
wheels."""
PLATFORMS = tuple(f"manylinux_2_{minor}_x86_64" for minor in GLIBC) + ("manylinux2014_x86_64",)
TOLD = ("torch", "transformers", "gradio", "triton")


def resolve(root: Path, card: dict) -> Iterator[tuple[bool, str]]:
    """Yield (whether the requirements cannot be met, a line of text) for each kind of hardware."""
    added = [package.format(**card) for package in ADDED]
    for name, pins in HARDWARE.items():
        yield _ask_pip(root, str(card["python_version"]), name, [*added, *pins])


def _ask_pip(root: Path, python: str, name: str, extra: list[str]) -> tuple[bool, str]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "-q"]
        command += ["--disable-pip-version-check", "--report", str(report), "--target", folder]
        command += ["--only-binary=:all:", "--implementation=cp", f"--python-version={python}"]
        command += [f"--platform={one}" for one in PLATFORMS]
        command += ["-r", str(root / "requirements.txt"), *extra]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or not report.is_file():
            why = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            return (
                True,
                f"{name}: the requirements cannot be met. {why[-1] if why else done.stderr[-300:]}",
            )
        packages = json.loads(report.read_text(encoding="utf-8"))["install"]
    versions = {one["metadata"]["name"].lower(): one["metadata"]["version"] for one in packages}
    listed = ", ".join(f"{key} {versions[key]}" for key in TOLD if key in versions)
    return False, f"{name}, Python {python}: {len(packages)} packages ({listed})"
