"""A page with all of our scripts and styles but no content, for tests that need no server."""

from collections.abc import Mapping

from app.assets import WEB, head
from tests.viz.modules import exposed

PAGE = """<!DOCTYPE html><html lang="en"><head><title>t</title>{head}
<style>* {{ box-sizing: border-box; }}</style></head><body class="{scheme}">
<main class="gradio-container"><h1>t</h1><div id="here"></div></main></body></html>"""


def bare_page(page, offer: Mapping, scheme: str = "light"):
    """Load the bare page into a browser's page; there ``DraftscopePage`` holds all that the page's modules export.

    offer: as from ``app.menu.offer``.
    """
    page.set_content(PAGE.format(head=head(offer), scheme=scheme))
    page.add_script_tag(content=exposed("DraftscopePage", WEB))
    page.evaluate("(offer) => DraftscopePage.takeOffer(offer)", dict(offer))
    return page
