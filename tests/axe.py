"""Finds obstacles for people who use a screen reader, a keyboard or strong contrasts, with axe."""

from axe_playwright_python.sync_playwright import Axe

SCHEMES = ("light", "dark")


def violations(page, inside: str | None = None) -> list[str]:
    """Return each rule that the page breaks, with the elements that break it. inside: a selector of the part to look
    at."""
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary']}"
        for rule in Axe().run(page, context=inside).response["violations"]
        for node in rule["nodes"]
    ]


def violations_in_both_schemes(page) -> list[str]:
    """Return the violations of the page in light and then in dark colours. The page stays dark."""
    told = []
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        told += [f"{scheme}: {line}" for line in violations(page)]
    return told
