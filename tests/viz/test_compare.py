"""Lanes side by side on one clock."""

import pytest

from tests.viz.builder import Toy
from tests.viz.conftest import until
from viz.bundle import bundle_css, bundle_js
from viz.export import embedded

LANES = {
    "none": Toy(style="none", rule="greedy", key="none", steps=20, milliseconds=4),
    "chain": Toy(style="chain", rule="greedy", steps=12),
    "tree": Toy(style="tree", rule="greedy", steps=9, milliseconds=8),
    "lookup": Toy(style="one_hot", rule="greedy", steps=14),
}
PAGE = """<!DOCTYPE html><html lang="en"><head><title>lanes</title><style>{css}</style></head>
<body><main><h1>lanes</h1><div id="view"></div></main>
<script id="lanes" type="application/json">{lanes}</script>
<script>{js}
const lanes = JSON.parse(document.getElementById("lanes").textContent);
const view = Draftscope.mountCompare(document.getElementById("view"), {{autoplay: false}});
</script></body></html>"""


@pytest.fixture
def race(watched, tmp_path):
    def open_(**options):
        texts = {name: toy.ndjson() for name, toy in LANES.items()}
        file = tmp_path / "lanes.html"
        file.write_text(
            PAGE.format(css=bundle_css(), js=bundle_js(), lanes=embedded(texts)), "utf-8"
        )
        page = watched(**options).page
        page.goto(file.as_uri())
        return page, texts

    return open_


def test_four_lanes_are_drawn_and_seek_on_one_axis(race):
    page, texts = race()
    page.evaluate("view.feed(lanes)")
    page.wait_for_selector("[data-lane='chain'] .tree g[data-node]")
    assert page.locator("[data-lane]").count() == 4
    for lane in texts:
        for panel in ("tree", "text", "timeline", "inspector"):
            assert page.locator(f"[data-lane='{lane}'] .{panel}").count() == 1
        assert page.locator(f"[data-lane='{lane}'] .tree").get_attribute("data-state") == "done"
    assert page.locator("[data-lane='none'] .timeline [data-step]").count() == 20
    whole = page.locator("[data-lane='chain'] .text [data-index]").count()
    page.evaluate("view.seek(view.milliseconds / 3)")
    part = page.locator("[data-lane='chain'] .text [data-index]").count()
    assert 0 < part < whole
    page.evaluate("view.seek(0)")
    assert page.locator("[data-lane='chain'] .text [data-index]").count() == 0
    page.keyboard.press("ArrowRight")
    assert page.evaluate("view.milliseconds") > 0
    assert page.locator(".ds-outcome tbody tr").count() == 4
    assert page.locator(".ds-same").inner_text()


def test_one_string_for_all_lanes_live(race):
    page, _ = race()
    page.evaluate(
        """async () => {
          const rows = Object.entries(lanes).map(([name, text]) => text.trim().split('\\n').map(l => `{"lane":${JSON.stringify(name)},` + l.slice(1)));
          let fed = '';
          view.setState('running');
          for (let k = 0; k < 30; k++) {
            for (const row of rows) if (row[k]) fed += row[k] + '\\n';
            view.feed(fed);
            await new Promise(requestAnimationFrame);
          }
          view.setState('done');
        }"""
    )
    until(page, "[...document.querySelectorAll('.tree')].every(t => t.dataset.state === 'done')")
    tokens = page.locator("[data-lane='none'] .text [data-index]").count()
    assert tokens == 20


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(race, scheme):
    from axe_playwright_python.sync_playwright import Axe

    page, _ = race(color_scheme=scheme)
    page.evaluate("view.feed(lanes); view.seek(40)")
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") == 390
