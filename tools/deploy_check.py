"""python -m tools.deploy_check: whether this tree can be deployed as a Hugging Face Space.

It reads the README's front matter, the sizes of what would be uploaded and what its files are, and
asks pip whether the requirements can be met for each kind of hardware. Exit code: 0, or 1 with a line for
each thing that is wrong.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools import front_matter, requirements

ROOT = Path(__file__).resolve().parents[1]
LARGE = 10_000_000
"""In bytes: a larger file must go through LFS or Xet: ``hf upload`` sees to it, ``git push`` does not."""
MOST = 1_000_000_000
"""Most bytes in a Space's repository."""
PICKLED = {".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle"}
"""Files that can run code when they are opened."""


@dataclass(frozen=True)
class Finding:
    """One line of the report. wrong: whether it is a reason not to deploy. told: the text."""

    wrong: bool
    told: str

    def __str__(self) -> str:
        return f"{'wrong' if self.wrong else 'good '}  {self.told}"


def files_of(root: Path) -> list[Path]:
    """Return the files that a commit of this tree would hold: tracked files, and untracked files that git does not
    ignore. In a folder that is no repository, they are all files."""
    git = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listing = subprocess.run(git, capture_output=True, check=True).stdout.decode()
        names = [name for name in listing.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        names = [str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir()]
    return [
        root / name
        for name in sorted(set(names))
        if (root / name).is_symlink() or (root / name).is_file()
    ]


def check_files(root: Path) -> Iterator[Finding]:
    """Yield findings on the files: their sizes, symbolic links, and files that would run code when they are opened."""
    files = files_of(root)
    links = [path for path in files if path.is_symlink()]
    sizes = {path: path.stat().st_size for path in files if not path.is_symlink()}
    name = lambda path: str(path.relative_to(root))
    for path in links:
        yield Finding(
            True, f"{name(path)} is a symbolic link; a Space gets the link, not the file."
        )
    for path in files:
        if path.suffix in PICKLED:
            yield Finding(True, f"{name(path)} is a pickled file; ship safetensors.")
    total = sum(sizes.values())
    told = f"{len(files)} files, {total / 1e6:.1f} MB of at most {MOST / 1e6:,.0f} MB"
    yield Finding(total > MOST, told)
    large = {path: size for path, size in sizes.items() if size > LARGE}
    for path, size in sorted(large.items()):
        yield Finding(
            False,
            f"{name(path)}: {size / 1e6:.1f} MB, goes through Xet (hf upload does it; git push needs git-xet or LFS)",
        )
    if "app.py" not in map(name, files):
        yield Finding(True, "there is no app.py")


def check(root: Path, online: bool = True) -> Iterator[Finding]:
    """Yield the findings of all checks. online: whether to ask pip if the requirements can be met."""
    try:
        card = front_matter.read(root / "README.md")
    except ValueError as error:
        yield Finding(True, str(error))
        card = {}
    problems = list(front_matter.problems(card, root)) if card else []
    yield from (Finding(True, told) for told in problems)
    if card and not problems:
        yield Finding(
            False,
            f"front matter: {card['sdk']} {card['sdk_version']}, Python {card['python_version']}",
        )
    yield from check_files(root)
    if card and not problems and online:
        for wrong, told in requirements.resolve(root, card):
            yield Finding(wrong, told)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.deploy_check", description=__doc__)
    parser.add_argument(
        "root", nargs="?", type=Path, default=ROOT, help="the tree (default: this one)"
    )
    parser.add_argument("--offline", action="store_true", help="do not ask pip")
    given = parser.parse_args(arguments)
    wrong = 0
    for finding in check(given.root, not given.offline):
        print(finding, flush=True)
        wrong += finding.wrong
    print(f"{wrong} thing{'s' * (wrong != 1)} wrong: do not deploy." if wrong else "Deployable.")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
