"""Slides of any moment: tree, icicle, race and figures are saved from the page as separate files, light and dark."""

import re
from io import BytesIO
from xml.etree import ElementTree

import pytest
from PIL import Image

from tests.viz.builder import Toy
from tests.viz.hostile import HOSTILE
from viz.race import joined

SVG = "{http://www.w3.org/2000/svg}"
SHAPES = {
    *("svg", "g", "title", "defs", "clipPath", "pattern", "text", "tspan", "path", "rect"),
    *("circle", "line", "ellipse", "polyline", "polygon"),
}
GROUNDS = {"light": "#ffffff", "dark": "#171c26"}
SETTINGS = {"words": list(HOSTILE), "pieces": list(HOSTILE), "prompt": " ".join(HOSTILE)}


@pytest.fixture
def save(visit, tmp_path):
    """save(trace, room) opens the trace; get(picture, colours, kind) presses the buttons and returns the bytes."""

    def bring(trace: str, room: str):
        watch = room == "watch"
        page = visit("/" if watch else "/?tab=compare").page
        file = tmp_path / "brought.ndjson"
        file.write_text(trace, "utf-8")
        page.wait_for_selector(f"#open-{'trace' if watch else 'race'}", state="attached")
        page.set_input_files(f"#open-{'trace' if watch else 'race'}", file)
        page.wait_for_function(
            f"document.querySelector('#{room}-status').innerText.includes('Opened')"
        )
        page.locator(f"#{room}-slide").focus()
        page.keyboard.press("Enter")  # from here on figures are drawn, too
        page.wait_for_selector(f"#{room}-figures .js-plotly-plot .gtitle")
        tools = page.get_by_role("group", name="Save a picture").and_(
            page.locator(f"#{room}-slide-tools *")
        )

        def get(picture: str, colours: str, kind: str) -> bytes:
            which = tools.get_by_label("Picture", exact=True)
            which.focus()
            which.select_option(label=picture)
            tools.get_by_label("Colours of the picture").select_option(colours)
            with page.expect_download() as download:
                tools.get_by_label(f"Save this picture as {kind.upper()}").press("Enter")
            assert download.value.suggested_filename.endswith(f"-{colours}.{kind}")
            return download.value.path().read_bytes()

        return page, get

    return bring


def words_of(svg: bytes, colours: str) -> list[str]:
    """Return the texts in an SVG. Asserts that it is well-formed, holds only shapes, and refers to nothing outside."""
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        assert element.tag.removeprefix(SVG) in SHAPES, element.tag
        for name, value in element.attrib.items():
            assert (
                not name.startswith("on") and "href" not in name and name not in ("style", "class")
            )
            assert "url(" not in value or re.fullmatch(r"url\(#[\w-]+\)", value), value
            assert "var(" not in value and "rgba" not in value and "javascript" not in value
    assert next(root.iter(f"{SVG}rect")).get("fill") == GROUNDS[colours]
    return ["".join(one.itertext()) for one in root.iter(f"{SVG}text")]


def check_png(data: bytes, colours: str, box: dict) -> None:
    picture = Image.open(BytesIO(data)).convert("RGB")
    assert picture.width >= 2 * box["width"] and picture.height >= 2 * box["height"]
    assert "#{:02x}{:02x}{:02x}".format(*picture.getpixel((2, 2))) == GROUNDS[colours]
    counts = picture.getcolors(1 << 20)
    assert max(count for count, _ in counts) < 0.995 * picture.width * picture.height, "not blank"


def test_tree_icicle_and_figures_are_saved_from_watch(save):
    page, get = save(Toy(steps=6, **SETTINGS).ndjson(), "watch")
    drawn = "#tree svg > g:not([display]) .ds-node:not([display]) .ds-label"
    labels = page.locator(drawn).all_text_contents()
    assert len(labels) > 3
    for colours in GROUNDS:
        told = words_of(get("Draft tree", colours, "svg"), colours)
        assert set(labels) <= set(told), "the tokens of the step, as text"
        assert any(one.startswith("Draft tree of step") for one in told)
        check_png(
            get("Draft tree", colours, "png"), colours, page.locator("#tree svg").bounding_box()
        )
    page.get_by_role("button", name="Icicle").click()
    cells = page.locator("#tree svg > g:not([display]) .ds-label").all_text_contents()
    told = words_of(get("Icicle", "dark", "svg"), "dark")
    assert set(cells) <= set(told) and any("probability of the whole path" in one for one in told)
    name = "Where the time went"
    figure = page.locator(".js-plotly-plot", has_text=name)
    for colours in GROUNDS:
        told = words_of(get(name, colours, "svg"), colours)
        assert {name, "milliseconds", "draft", "verify"} <= set(told)
        check_png(get(name, colours, "png"), colours, figure.bounding_box())
    assert page.locator("#watch-view .ds").get_attribute("data-slide") is None
    assert page.locator("#watch-view .ds").get_attribute("data-theme") == "light"


def test_the_race_and_the_trees_of_its_lanes_are_saved_from_compare(save):
    toys = {name: Toy(steps=count, **SETTINGS).ndjson() for name, count in (("one", 9), ("two", 7))}
    page, get = save(joined(toys), "compare")
    page.wait_for_selector("[data-lane=two] .text [data-index]", state="attached")
    names = page.locator("#compare-view .ds-lane-name").all_text_contents()
    for colours in GROUNDS:
        told = words_of(get("The race", colours, "svg"), colours)
        assert set(names) <= set(told) and "measured compute time" in told
        for lane in toys:
            text = page.locator(f"[data-lane={lane}] .text").evaluate(
                "box => [...box.querySelectorAll('[data-index]')].map((one) => one.textContent).join('')"
            )
            end = " ".join(text.split())[-20:]
            assert any(one.endswith(end) for one in told), "the end of each lane's text"
        check_png(
            get("The race", colours, "png"),
            colours,
            page.locator("#compare-view .ds-race-card").bounding_box(),
        )
    page.locator("[data-lane=one] [aria-expanded=false]").first.click()
    lane = f"Draft tree: {names[0]}"
    assert any(one.startswith(names[0]) for one in words_of(get(lane, "light", "svg"), "light"))
    assert "Speed" in words_of(get("Speed", "dark", "svg"), "dark")
