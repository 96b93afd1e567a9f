"""Changes gradio's own template of the page, before its content is filled in."""

import re

from gradio import routes
from jinja2 import ChoiceLoader, DictLoader

PAGE = "frontend/index.html"
NONCE = 'nonce="{{ request.state.nonce }}"'
FIRST = """
// Gradio's message "Loading..." counts its seconds in every frame, and goes on after it has left the page: a tenth of a
// processor, for as long as the page is open. So its first frame is refused; all others are passed on.
{
  const ask = window.requestAnimationFrame.bind(window);
  const counts = (draw) => /performance\\.now\\(\\)-.*\\/1e3/.test(String(draw).slice(0, 200));
  let refused = false;
  window.requestAnimationFrame = (draw) => {
    if (refused || !counts(draw)) return ask(draw);
    refused = true;
    return 0;
  };
}
"""
"""The script that runs before those of gradio."""


def adapt() -> None:
    """Put ``FIRST`` before all other scripts, and the nonce of the request on each script of the template. A script that
    comes in with the content gets no nonce."""
    loader = routes.templates.env.loader
    source, *_ = loader.get_source(routes.templates.env, PAGE)
    source = source.replace("<head>", f"<head><script>{FIRST}</script>", 1)
    marked = re.sub(r"<script(?![^>]*\ssrc=)", f"<script {NONCE}", source)
    routes.templates.env.loader = ChoiceLoader([DictLoader({PAGE: marked}), loader])
