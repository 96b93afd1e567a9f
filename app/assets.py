"""Scripts and styles, put into the page once: the drawing code first, then the page's own."""

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
    """The HTML for the page's head. No request is made for any of it.

    offer: the choices of the page's controls, from ``menu.offer``.
    """
    offered = json.dumps(offer).replace("<", "\\u003c")
    code = script(WEB / "main.js") + f"DraftscopePage.takeOffer({offered});"
    css = styles()
    if "</script" in code.lower() or "</style" in css.lower():
        raise ValueError("a script or style would close its own element")
    return f"<style>{css}</style><script>{code}</script>"


def styles() -> str:
    """All styles of the page, beside the variables of its theme."""
    return scoped("\n".join([bundle_css(), lesson_css(), *map(_read, STYLES)]))


def _read(name: str) -> str:
    return (WEB / name).read_text(encoding="utf-8")


def scoped(css: str) -> str:
    """The styles, nested under the page's root so that they outweigh gradio's own resets.

    Keyframes cannot be nested; they come first.
    """
    keyframes = re.compile(r"@keyframes[^{]*\{(?:[^{}]|\{[^{}]*\})*\}")
    return "\n".join(keyframes.findall(css)) + ".gradio-container {" + keyframes.sub("", css) + "}"
