"""python -m viz.folder TRACE.ndjson [TRACE.ndjson ...] -o FOLDER: a folder of static files that replays runs
and races with no server behind it.

It opens from a disk, from any path of any web server, and as a static Hugging Face Space. One trace: index.html
replays it. Several: index.html lists them, each has a page of its own. Beside them lie the traces, and
README.md with the snippet that shows a replay in another page.
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from engine.errors import UserError
from engine.trace import read_text
from viz.export import page
from viz.shelf import Item, front, item_of, snippet

MANIFEST = "draftscope.json"
"""The file that lists the contents of a folder, and marks the folder as one that this command may replace."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m viz.folder", description=__doc__)
    parser.add_argument("traces", type=Path, nargs="+", help="traces or saved races (NDJSON)")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the folder to write")
    parser.add_argument("--title", default="Draftscope", help="heading of the list")
    given = parser.parse_args(arguments)
    try:
        items = write_folder(given.traces, given.output, given.title)
    except UserError as error:
        print(str(error).encode("unicode_escape").decode("ascii"), file=sys.stderr)
        return 2
    print(f"{given.output}: {len(items)} replay{'s' * (len(items) != 1)}. To show one in a page:")
    print(snippet(items[0]))
    return 0


def write_folder(sources: Sequence[Path], folder: Path, title: str) -> list[Item]:
    """Write the whole folder, or nothing. Raises UserError for a source that is no trace, for a folder with
    other things in it, and for a folder that cannot be written."""
    texts = [read_text(source) for source in sources]
    items = named([item_of(text, source.stem) for text, source in zip(texts, sources, strict=True)])
    if folder.exists() and not (folder.is_dir() and is_ours(folder)):
        raise UserError(f"{folder} holds other things; name a new folder.")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror}.") from error
    try:
        _fill(beside, items, texts, title)
        beside.chmod(0o755)
        if folder.exists():
            shutil.rmtree(folder)
        beside.rename(folder)
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror}.") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return items


def is_ours(folder: Path) -> bool:
    """Return whether the folder is empty, or was written by this command."""
    return (folder / MANIFEST).is_file() or not any(folder.iterdir())


def named(items: list[Item]) -> list[Item]:
    """Return the items with the names of their pages: index for a single item, distinct names for several."""
    if len(items) == 1:
        return [items[0].called("index")]
    taken = {"index"}
    renamed = []
    for item in items:
        name, number = item.name, 2
        while name.casefold() in taken:
            name, number = f"{item.name}-{number}", number + 1
        taken.add(name.casefold())
        renamed.append(item.called(name))
    return renamed


def _fill(folder: Path, items: list[Item], texts: list[str], title: str) -> None:
    (folder / "traces").mkdir()
    for item, text in zip(items, texts, strict=True):
        (folder / item.file).write_text(page(text, item.heading, item.race), "utf-8")
        (folder / "traces" / f"{item.name}.ndjson").write_text(text, "utf-8")
    if len(items) > 1:
        (folder / "index.html").write_text(front(items, title), "utf-8")
    (folder / "README.md").write_text(_readme(items, title), "utf-8")
    listed = [item.told() for item in items]
    (folder / MANIFEST).write_text(json.dumps({"replays": listed}, indent=1) + "\n", "utf-8")


def _readme(items: list[Item], title: str) -> str:
    """Return the text of README.md, with the front matter of a static Space."""
    snippets = "\n\n".join(f"```html\n{snippet(item)}\n```" for item in items)
    return f"""---
title: {json.dumps(title)}
emoji: 🌳
colorFrom: blue
colorTo: indigo
sdk: static
app_file: index.html
---

Replays of speculative decoding, made by Draftscope. Open `index.html`; no server is needed. As a static Space:

```
hf repos create NAME/replays --type space --sdk static
hf upload NAME/replays . . --type space
```

To show a replay in a page of yours (write the address of this folder before the file's name; `#embed` leaves the
heading out, `&step=12` opens a run at that step, `&at=500` a race at that millisecond):

{snippets}
"""


if __name__ == "__main__":
    sys.exit(main())
