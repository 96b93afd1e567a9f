"""The drawing code as two strings, which the page and the exported file share."""

from functools import cache
from pathlib import Path

WEB = Path(__file__).parent / "web"

SCRIPTS = (
    "base.js",
    "words.js",
    "trace.js",
    "layout.js",
    "picture.js",
    "chip.js",
    "sources.js",
    "camera.js",
    "tree.js",
    "icicle.js",
    "glossary.js",
    "legend.js",
    "templates.js",
    "sentence.js",
    "inspector.js",
    "text.js",
    "timeline.js",
    "tracks.js",
    "cells.js",
    "exhibit-words.js",
    "exhibit-table.js",
    "exhibit-matrix.js",
    "exhibit-lattice.js",
    "exhibit-layers.js",
    "exhibit-gauge.js",
    "exhibit-curve.js",
    "exhibit-clouds.js",
    "exhibits.js",
    "player.js",
    "flight.js",
    "transport.js",
    "facts.js",
    "proof.js",
    "stages.js",
    "panels.js",
    "watch.js",
    "race.js",
    "outcome.js",
    "lane.js",
    "compare.js",
    "difference.js",
    "span.js",
    "beside.js",
)
LESSON_SCRIPTS = (
    "slides/copy.js",
    "slides/pictures.js",
    "slides/slide.js",
    "learn/seeded.js",
    "learn/law.js",
    "learn/chart.js",
    "learn/rule.js",
    "learn/length.js",
    "learn/nodes.js",
    "learn/question.js",
    "learn/stage.js",
    "learn/lesson.js",
    "learn/shelf.js",
    "learn/quiz.js",
)
"""The scripts that lessons need in addition, and the page for its slides."""
LESSON_STYLES = ("learn/learn.css", "learn/instruments.css")
STYLES = (
    "base.css",
    "tree.css",
    "inspector.css",
    "text.css",
    "picture.css",
    "timeline.css",
    "exhibits.css",
    "compare.css",
    "beside.css",
    "token.css",
)


@cache
def bundle_js() -> str:
    """All scripts, each after those that it depends on. They define ``Draftscope``."""
    return "\n".join((WEB / name).read_text("utf-8") for name in SCRIPTS)


@cache
def bundle_css() -> str:
    """All styles. Every rule is scoped to ``.ds`` or to a class that begins with ``ds-``."""
    return "\n".join((WEB / name).read_text("utf-8") for name in STYLES)


@cache
def lesson_js() -> str:
    """The scripts of the lessons, which must follow those of ``bundle_js``."""
    return "\n".join((WEB / name).read_text("utf-8") for name in LESSON_SCRIPTS)


@cache
def lesson_css() -> str:
    """The styles of the lessons, scoped to classes that begin with ``ln``."""
    return "\n".join((WEB / name).read_text("utf-8") for name in LESSON_STYLES)
