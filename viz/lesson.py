"""Makes a lesson into one self-contained HTML file, with the runs that it shows."""

import html
from collections.abc import Mapping

from viz.bundle import WEB, bundle_css, lesson_css, script
from viz.export import closed_page, embedded

_PAGE_CSS = """
html { color-scheme: light dark; background: light-dark(#f3f2ee, #0b0e14); }
body { margin: 0 auto; padding: 20px clamp(8px, 2.5vw, 36px) 36px; max-width: 1500px; }
.ln-home { margin: 0 0 10px; font: 400 0.9375rem/1.4 system-ui, sans-serif; }
.ln-home a { color: light-dark(#1a5d99, #8abaf0); }
@media print { .ln-home { display: none; } }
"""


def page(
    data: Mapping, runs: Mapping[str, str], title: str, links: Mapping[str, str] | None = None
) -> str:
    """Return the HTML of a lesson, of the quiz, or of the list of lessons.

    data: {"lesson"}, {"quiz"} or {"shelf"}, each as the browser draws it. runs: name -> NDJSON, which the caller has
    validated. links: the target of a link in lessons -> the file beside this one.
    """
    links = links or {}
    home = '<p class="ln-home"><a href="index.html">All lessons</a></p>' if links else ""
    body = f"""<main>
{home if "shelf" not in data else f"<h1>{html.escape(title)}</h1>"}
<div id="view"></div>
</main>
<script id="lesson" type="application/json">{embedded(data)}</script>
<script id="runs" type="application/json">{embedded(dict(runs))}</script>
<script id="links" type="application/json">{embedded(dict(links))}</script>"""
    css = bundle_css() + lesson_css() + _PAGE_CSS
    return closed_page(title, body, css, script(WEB / "learn" / "offline.js"), images="blob:")
