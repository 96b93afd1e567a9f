"""A page with all scripts and styles of ours and nothing on it: what needs no server is tried there."""

from collections.abc import Mapping

from app.assets import head

PAGE = """<!DOCTYPE html><html lang="en"><head><title>t</title>{head}
<style>* {{ box-sizing: border-box; }}</style></head><body class="{scheme}">
<main class="gradio-container"><h1>t</h1><div id="here"></div></main></body></html>"""


def bare_page(page, offer: Mapping, scheme: str = "light"):
    """Fill a browser's page. offer: as of ``app.menu.offer``."""
    page.set_content(PAGE.format(head=head(offer), scheme=scheme))
    return page
