"""The exhaustive tests, group by group: python -m tests.exhaustive

``make test`` leaves them out: grids over every sampling, kernels under Triton's interpreter, training recipes, twenty
prompts a workload, and all but the main journeys through the page. They carry the mark ``exhaustive``.

``passed.json`` holds, for each group, a digest of the files that the group tests, as they were when it last passed. With
--changed, only the groups whose files are others now are run; CI does that.
"""

import argparse
import hashlib
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PASSED = Path(__file__).with_name("passed.json")
ENGINE = ("engine", "presets/models")
NOTEBOOKS = ("tests/test_notebook.py", "tests/test_lesson_notebook.py")
GROUPS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "kernels": (("tests/kernels",), ("engine/fast/kernels", "engine/fast/gpu", "tests/kernels")),
    "training": (
        ("tests/training",),
        ("engine/training", "engine/parts", "engine/methods", "tests/training"),
    ),
    "engine": (
        (
            "tests/engine",
            "tests/drafters",
            "tests/verifiers",
            "tests/bench",
            "tests/tune",
            "tests/test_outside_methods.py",
        ),
        (
            *ENGINE,
            "tests/engine",
            "tests/drafters",
            "tests/verifiers",
            "tests/bench",
            "tests/tune",
        ),
    ),
    "page": (
        ("tests/app", "tests/viz", "tests/presets", "tests/tools", *NOTEBOOKS),
        ("app", "viz", "presets", "tools", "docs", "tests/app", "tests/viz", "tests/presets"),
    ),
}
"""Name -> (folders of tests, folders and files that these tests depend on)."""
NOTHING_COLLECTED = 5  # pytest's exit code


def digest(places: tuple[str, ...]) -> str:
    """Return a digest of the names and contents of all tracked files in these places."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *places], cwd=ROOT, capture_output=True, check=True
    )
    found = hashlib.sha256()
    for name in sorted(filter(None, listed.stdout.decode().split("\0"))):
        found.update(name.encode() + b"\0")
        found.update(hashlib.sha256((ROOT / name).read_bytes()).digest())
    return found.hexdigest()


def passed() -> dict[str, str]:
    return json.loads(PASSED.read_text("utf-8")) if PASSED.exists() else {}


def changed() -> list[str]:
    """Return the groups whose files have changed since the group last passed."""
    known = passed()
    return [name for name, (_, places) in GROUPS.items() if known.get(name) != digest(places)]


def run(name: str) -> int:
    """Run the exhaustive tests of a group; returns pytest's exit code, and records a pass."""
    tests, places = GROUPS[name]
    before = digest(places)
    code = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-n",
            "3",
            "--dist",
            "worksteal",
            "-m",
            "exhaustive",
            *tests,
        ],
        cwd=ROOT,
        check=False,
    ).returncode
    if code in (0, NOTHING_COLLECTED):
        PASSED.write_text(json.dumps(passed() | {name: before}, indent=1) + "\n", "utf-8")
        return 0
    return code


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.exhaustive", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=", ".join(GROUPS))
    parser.add_argument("--changed", action="store_true", help="only groups whose files changed")
    given = parser.parse_args()
    unknown = set(given.groups) - set(GROUPS)
    if unknown:
        parser.error(f"no such group: {', '.join(sorted(unknown))}")
    names = given.groups or list(GROUPS)
    if given.changed:
        names = [name for name in changed() if name in names]
    codes = []
    for name in names:
        print(f"exhaustive tests: {name}", flush=True)
        codes.append(run(name))
    return max(codes, default=0)


if __name__ == "__main__":
    sys.exit(main())
