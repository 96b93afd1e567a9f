"""The page's modules as a test reaches them: one by one, or all that they export in one global."""

import os
import tempfile
from functools import cache
from pathlib import Path

from viz.bundle import module, script

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (ROOT / "viz" / "web", ROOT / "app" / "web")


def scripts(*folders: Path) -> list[Path]:
    return sorted(path for folder in folders for path in folder.rglob("*.js"))


@cache
def exposed(name: str, *folders: Path) -> str:
    """Return a script that puts all exports of the modules in these folders into one global of this name.

    Entries export nothing, so they are left out.
    """
    exports = {path: module(path).exports for path in scripts(*folders)}
    with tempfile.TemporaryDirectory() as made:
        entry = Path(made).resolve() / "entry.js"
        lines = [
            f'import {{ {", ".join(names)} }} from "{os.path.relpath(path, entry.parent)}";'
            for path, names in exports.items()
            if names
        ]
        everything = ", ".join(one for names in exports.values() for one in names)
        entry.write_text("\n".join([*lines, f"globalThis.{name} = {{ {everything} }};"]), "utf-8")
        return script(entry)
