"""python -m tools.static_site FOLDER: the whole place without a server.

Watch and Compare on all runs that were made earlier, Methods, and Learn with its instruments and quiz: one page, and a
file for each run and each lesson. It opens from a disk, from any web server, and as a static Space:

python -m tools.static_site FOLDER --space NAME/PLACE    also uploads it (with the token of `hf auth login`)
"""

import argparse
import html
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from app import theme, words
from app.assets import WEB, styles
from app.example_menu import preset_menu, race_made_earlier, race_menu
from app.lessons import learn_lesson, learn_shelf
from app.menu import offer
from app.methods import shelf as method_shelf
from engine.errors import UserError
from presets import trace_names, trace_text
from presets.checked import checked
from viz.bundle import script
from viz.export import closed_page, embedded

TITLE = words.TITLE
SPACE_CARD = f"""---
title: {TITLE}
emoji: 🌳
colorFrom: blue
colorTo: gray
sdk: static
license: apache-2.0
short_description: {words.HEADLINE[:60]}
---

{words.HEADLINE} Every run was made by the engine; nothing here needs a server.
"""
LEADS = {
    "watch": words.WATCH_LEAD,
    "compare": words.COMPARE_LEAD,
    "methods": words.METHODS_LEAD,
    "learn": words.LEARN_LEAD,
}
PAGE_CSS = (WEB / "site.css").read_text("utf-8")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.static_site",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, help="the folder to write; it must be new or empty")
    parser.add_argument("--live", default="", metavar="ADDRESS", help="a page that runs prompts")
    parser.add_argument("--space", default="", metavar="NAME/PLACE", help="upload it to this Space")
    wish = parser.parse_args(arguments)
    try:
        size = write_site(wish.folder, wish.live)
        print(f"{wish.folder}: {size / 1e6:.1f} MB; open index.html")
        if wish.space:
            print(upload(wish.folder, wish.space))
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def write_site(folder: Path, live: str = "") -> int:
    """Write the site into a new or empty folder: all of it, or nothing. Returns its size in bytes.

    live: the address of a page that runs prompts, "" for none. Raises UserError for another kind of address, a folder
    with content, and a folder that cannot be written.
    """
    if live and not live.startswith(("https://", "http://")):
        raise UserError(f"{live!r} is no address of a page; it must begin with https://.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} is not an empty folder; name a new one.")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            for name, text in files(live).items():
                (beside / name).parent.mkdir(exist_ok=True)
                (beside / name).write_text(text, encoding="utf-8")
            beside.chmod(0o755)
            os.replace(beside, folder)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror}.") from error
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def files(live: str = "") -> dict[str, str]:
    """Return path below the site's folder -> text, for all files of the site. live: as for ``write_site``."""
    results = checked()
    runs = {
        name: {"text": trace_text(name), "checked": results.get(name)} for name in trace_names()
    }
    runs |= {name: {"text": text} for name in race_menu() if (text := race_made_earlier(name))}
    place = learn_shelf()
    lessons = {
        name: learn_lesson(name) for name in (*(one["name"] for one in place["lessons"]), "quiz")
    }
    site = {
        "name": TITLE,
        "line": words.HEADLINE,
        "foot": words.FOOT,
        "live": live,
        "leads": LEADS,
        "offer": offer(),
        "methods": method_shelf(),
        "shelf": place,
        "runs": list(runs),
        "lessons": list(lessons),
        "examples": [_card(name, entry) for name, entry in preset_menu().items() if name in runs],
        "races": [_card(name, entry) for name, entry in race_menu().items() if name in runs],
    }
    return {
        "index.html": _index(site),
        "README.md": SPACE_CARD,
        ".nojekyll": "",
        **{f"runs/{name}.js": _brought("runs", name, value) for name, value in runs.items()},
        **{f"lessons/{name}.js": _brought("lessons", name, text) for name, text in lessons.items()},
    }


def _card(name: str, entry: dict) -> dict:
    return {
        "name": name,
        **{part: entry[part] for part in ("title", "look_for", "listed", "group")},
    }


def _brought(folder: str, name: str, value: object) -> str:
    """Return a script that hands a value to the page. It is ASCII, because a page from a disk cannot set its
    encoding."""
    arguments = ",".join(json.dumps(argument) for argument in (folder, name, value))
    return f"DraftscopeSite.bring({arguments});\n"


def _index(site: dict) -> str:
    body = f"""<div class="gradio-container"><main class="main" id="place">
<noscript>{html.escape(TITLE)} needs JavaScript.</noscript>
</main></div>
<script id="site" type="application/json">{embedded(site)}</script>"""
    css = f"{theme.variables()}\n{styles()}\n{PAGE_CSS}"
    return closed_page(
        TITLE, body, css, script(WEB / "site.js"), images="blob: data:", scripts="'self'"
    )


def upload(folder: Path, space: str) -> str:
    """Upload the folder to a static Space, which is created if it does not exist. Returns its address. Raises
    UserError."""
    import httpx
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    api = HfApi()
    try:
        if api.repo_exists(space, repo_type="space") and api.space_info(space).sdk != "static":
            raise UserError(
                f"{space} is a Space of another kind, whose files this would replace; name a new one."
            )
        api.create_repo(space, repo_type="space", space_sdk="static", exist_ok=True)
        api.upload_folder(folder_path=folder, repo_id=space, repo_type="space", delete_patterns="*")
    except (HfHubHTTPError, HFValidationError, httpx.HTTPError, OSError) as error:
        raise UserError(f"{space} could not be written: {str(error).splitlines()[0]}") from None
    return f"https://huggingface.co/spaces/{space}"


if __name__ == "__main__":
    sys.exit(main())
