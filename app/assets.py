"""Collects the scripts and styles of the page's head: the drawing code first, then the page's own code."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from viz.bundle import bundle_css, lesson_css, script

WEB = Path(__file__).parent / "web"
STYLES = (
    "page.css",
    "controls.css",
    "tour.css",
    "watch.css",
    "methods.css",
    "own-models.css",
    "recorded.css",
    "learn.css",
    "tune.css",
    "one-column.css",
)


def head(offer: Mapping) -> str:
    """Return the HTML of the page's head. All scripts and styles stand in it, so the browser requests no further file.

    offer: the choices of the page's controls, from ``menu.offer``. Raises ValueError if a script or style would close
    its element.
    """
    offered = json.dumps(offer).replace("<", "\\u003c")
    code = script(WEB / "main.js") + f"DraftscopePage.takeOffer({offered});"
    css = styles()
    if "</script" in code.lower() or "</style" in css.lower():
        raise ValueError("a script or style would close its own element")
    return f"<style>{css}</style><script>{code}</script>"


def styles() -> str:
    """Return all styles of the page; the variables of its colours come from ``app.theme``."""
    return scoped("\n".join([bundle_css(), lesson_css(), *map(_read, STYLES)]))


def _read(name: str) -> str:
    return (WEB / name).read_text(encoding="utf-8")


def scoped(css: str) -> str:
    """Return the styles nested under the page's root so that they outweigh gradio's own resets.

    Keyframes cannot be nested; they come first.
    """
    keyframes = re.compile(r"@keyframes[^{]*\{(?:[^{}]|\{[^{}]*\})*\}")
    return "\n".join(keyframes.findall(css)) + ".gradio-container {" + keyframes.sub("", css) + "}"
