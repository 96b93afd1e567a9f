"""Makes a self-contained HTML file that replays a trace. It makes no request, and no text of the trace is parsed as
HTML."""

import base64
import hashlib
import html
import json

from viz.bundle import WEB, bundle_css, script

_PAGE_CSS = """
html { color-scheme: light dark; background: light-dark(#f3f2ee, #0b0e14); }
body { margin: 0 auto; padding: 20px clamp(8px, 2.5vw, 36px) 36px; max-width: 1500px; }
h1 { font: 650 1.25rem/1.3 system-ui, sans-serif; margin: 0 4px 14px;
     color: light-dark(#1b2432, #e9edf4); overflow-wrap: anywhere; unicode-bidi: isolate; }
html[data-embed] h1 { display: none; }
html[data-embed] body { padding: 4px; }
"""


def page(text: str, title: str = "Draftscope", race: bool = False) -> str:
    """Return the HTML of a page that replays the NDJSON ``text``: a trace, or the tagged lines of a race.

    The caller must have validated the text. The page's address may end with ``#embed``, which leaves the
    heading out, and with the place to open at: ``step=`` for a run, ``at=`` (milliseconds) for a race.
    """
    kind = ' data-race="1"' if race else ""
    body = f"""<main>
<h1>{html.escape(title)}</h1>
<div id="view"{kind}></div>
</main>
<script id="trace" type="application/json">{embedded(text)}</script>"""
    return closed_page(title, body, bundle_css() + _PAGE_CSS, script(WEB / "replay.js"))


def closed_page(
    title: str, body: str, css: str, js: str, images: str = "'none'", scripts: str = ""
) -> str:
    """Return a page that requests nothing and runs only this script. body: HTML whose text is already escaped.

    images: the image sources that the policy allows; blob: stands for images that the page made itself. scripts:
    further script sources that the policy allows; 'self' stands for files beside the page.
    """
    policy = (
        f"default-src 'none'; script-src {_hash(js)} {scripts}; style-src {_hash(css)}; img-src {images}; "
        "base-uri 'none'; form-action 'none'"
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title>
<style>{css}</style>
</head>
<body>
{body}
<script>{js}</script>
</body>
</html>
"""


def embedded(value) -> str:
    """Return the value as JSON that is safe inside a script element: ASCII without ``<``, ``>`` and ``&``."""
    written = json.dumps(value)
    for character in "<>&":
        written = written.replace(character, f"\\u{ord(character):04x}")
    return written


def _hash(source: str) -> str:
    digest = hashlib.sha256(source.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
