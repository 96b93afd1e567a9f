"""The card "This method, this step": every kind of exhibit, all at one height, and hostile and malformed data."""

import copy
import json

import pytest

from tests.axe import violations_in_both_schemes
from tests.viz.builder import Toy
from tests.viz.conftest import until
from tests.viz.exhibited import KINDS, exhibited, merged, ndjson, overlapped
from tests.viz.hostile import HOSTILE

FRAME = "() => new Promise((go) => requestAnimationFrame(() => go()))"
FIGURES = "() => [...document.querySelectorAll('.ds-exhibit')].map((one) => one.innerText)"


def show(page, step: int) -> None:
    page.evaluate(f"view.goto({step})")
    page.evaluate(FRAME)


def with_exhibits(exhibits: list, steps: int = 3) -> str:
    """Return a run whose second step has these exhibits."""
    lines = Toy(steps=steps).lines()
    lines[2]["drafter"]["exhibits"] = exhibits
    return ndjson(lines)


def test_every_kind_is_drawn_and_tells_a_screen_reader_what_it_shows(replay):
    lines = exhibited()
    page = replay(ndjson(lines))
    show(page, 2)
    drawn = page.locator(".ds-exhibits .ds-exhibit-row").first.locator(".ds-exhibit")
    assert [one.get_attribute("data-kind") for one in drawn.all()] == list(KINDS)
    given = lines[3]["drafter"]["exhibits"]
    for exhibit, figure in zip(given, drawn.all(), strict=False):
        assert figure.locator("figcaption").inner_text() == exhibit["title"]
        assert exhibit["note"] in figure.inner_text()
    by_kind = {one["kind"]: one for one in given}
    assert page.locator(".ds-table tbody tr").count() == len(by_kind["table"]["rows"])
    assert page.locator(".ds-layers .ds-layer").count() == len(by_kind["layers"]["layers"])
    path = by_kind["lattice"]["path"]
    assert page.locator(".ds-choice-chip[data-chosen]").count() == len(path)
    for kind in ("matrix", "lattice", "layers", "curve", "clouds"):
        told = page.locator(f".ds-exhibit[data-kind={kind}] .ds-unseen").inner_text()
        box = page.locator(f".ds-exhibit[data-kind={kind}] .ds-exhibit-box")
        assert told and told in box.get_attribute("aria-label")
    chosen = by_kind["lattice"]["columns"][0][path[0]]["piece"].replace(" ", "␣")
    assert chosen in page.locator("[data-kind=lattice] .ds-unseen").inner_text()
    meters = page.locator(".ds-meters")
    assert meters.get_by_role("heading", name="Meter").is_visible()
    assert meters.locator(".ds-exhibit").count() == 1


def test_meters_alone_take_the_whole_card(replay):
    lines = exhibited(Toy(steps=3))
    meter = {"kind": "gauge", "title": "Entropy", "value": 0.4, "meter": True}
    left = []
    for more in ([], [{"kind": "gauge", "title": "Nodes", "value": 1.0}]):
        for line in lines[1:-1]:
            line["drafter"]["exhibits"] = [meter, *more]
        page = replay(ndjson(lines))
        show(page, 2)
        card, meters = page.locator(".ds-exhibits-body"), page.locator(".ds-meters")
        left.append(meters.bounding_box()["x"] - card.bounding_box()["x"])
    assert left[0] < 40 < left[1]


@pytest.mark.parametrize("width", [1280, 390])
def test_the_card_keeps_its_height_and_fits(replay, width):
    lines = exhibited(Toy(steps=8, budget=20, seed=2))
    lines[4]["drafter"]["exhibits"] = []
    lines[5]["drafter"]["exhibits"] = lines[5]["drafter"]["exhibits"][:1]
    page = replay(ndjson(lines))
    page.set_viewport_size({"width": width, "height": 900})
    phone = str(width < 520).lower()
    until(page, f"document.querySelector('.ds').hasAttribute('data-phone') === {phone}")
    heights = set()
    for step in (0, 4, 7):
        show(page, step)
        heights.add(page.locator(".ds-exhibits").bounding_box()["height"])
        assert page.evaluate("document.documentElement.scrollWidth") == width
    assert len(heights) == 1


def test_a_step_without_exhibits_has_no_card_unless_steps_follow_one_another(replay):
    lines = exhibited(Toy(steps=8, budget=20, seed=2))
    lines[4]["drafter"]["exhibits"] = []
    page = replay(ndjson(lines), reduced_motion="no-preference")
    card = page.locator(".ds-exhibits")
    show(page, 2)
    high = card.bounding_box()["height"]
    show(page, 3)
    assert card.is_hidden()
    show(page, 4)
    assert card.bounding_box()["height"] == high
    page.evaluate(
        """() => { window.seen = []; view.setPace('brisk'); view.goto(2); view.play();
          const look = () => { if (view.playing && view.step === 3) {
            const nothing = document.querySelector('.ds-exhibits .ds-quiet');
            window.seen.push([document.querySelector('.ds-exhibits').offsetHeight, nothing.hidden]);
          } if (view.step < 5) requestAnimationFrame(look); };
          look(); }"""
    )
    until(page, "view.step >= 5")
    seen = page.evaluate("window.seen")
    assert seen and {height for height, _ in seen} == {round(high)}, "nothing below it moves"
    assert seen[-1][1] is False, "it says that there is nothing"


def test_a_run_without_exhibits_has_no_card(replay):
    page = replay(Toy(steps=4).ndjson())
    show(page, 2)
    assert page.locator(".ds-exhibits").is_hidden()
    assert page.locator(".ds-exhibit").count() == 0
    page.evaluate("text => view.feed(text)", ndjson(exhibited(Toy(steps=3))))
    show(page, 1)
    assert page.locator(".ds-exhibits").is_visible()
    page.evaluate("text => view.feed(text)", Toy(steps=4).ndjson())
    show(page, 1)
    assert page.locator(".ds-exhibits").is_hidden()


ODD = [
    {"kind": "hologram", "title": "A new kind", "depth": 3, "of": ["light", "shade"]},
    {"kind": "constructor", "title": "No kind at all"},
    {"kind": "__proto__", "title": "Nor this"},
    {"kind": "matrix", "title": "Ragged", "rows": ["a", "b"], "columns": ["x"], "values": [[1]]},
    {"kind": "matrix", "title": "Of words", "rows": ["a"], "columns": ["x"], "values": [["1"]]},
    {"kind": "matrix", "title": "Empty", "rows": [], "columns": [], "values": []},
    {"kind": "table", "title": "No rows", "columns": ["a"], "rows": 3},
    {"kind": "lattice", "title": "No tokens", "columns": [[{"p": 1}]], "path": [0]},
    {"kind": "lattice", "title": "Nothing", "columns": [], "path": [7]},
    {"kind": "layers", "title": "No state", "layers": [{"state": "asleep"}]},
    {"kind": "gauge", "title": "No scale", "value": 1, "minimum": 2, "maximum": 1},
    {"kind": "gauge", "title": "Unknown", "value": None},
    {"kind": "curve", "title": "Too short", "x": [1, 2], "series": [{"name": "a", "y": [1]}]},
    {"kind": "curve", "title": "Huge", "x": [1], "series": [{"name": "a", "y": [1e300]}]},
    {"kind": "words", "title": "No lines"},
]


def test_what_is_unknown_or_malformed_is_plain_words(replay):
    page = replay(with_exhibits(ODD))
    show(page, 1)
    figures = page.evaluate(FIGURES)
    assert len(figures) == len(ODD)
    for exhibit, text in zip(ODD, figures, strict=True):
        assert text.startswith(exhibit["title"])
    assert "depth: 3" in figures[0] and '["light","shade"]' in figures[0]
    page.evaluate(
        "text => view.feed(text)", with_exhibits([None, 7, "seven", [], {}, {"kind": 3}], steps=4)
    )
    show(page, 1)
    assert len(page.evaluate(FIGURES)) == 6


def test_hostile_strings_in_exhibits_spans_and_sources_stay_text(replay):
    words = list(HOSTILE)
    plain = merged(overlapped(exhibited(Toy(steps=8, budget=20, seed=2))))
    page = replay(ndjson(plain))
    show(page, 2)
    allowed = page.evaluate("[...new Set([...document.querySelectorAll('*')].map(e => e.tagName))]")
    lines = exhibited(Toy(steps=12, words=words, cut=20, budget=12), words)
    lines = merged(overlapped(lines), [word[:200] for word in words])
    for step in lines[1:-1]:
        for place, span in enumerate(step["spans"]):
            span["lane"], span["what"] = words[place + 1][:200], words[step["index"]][:200]
    lines[0]["verifier"]["sentences"] = dict.fromkeys(
        ("without_replacement.kept", "without_replacement.refused", "bonus", "recovered"),
        "<img src=x onerror=alert(1)> {token} ${alert(1)} {final}",
    )
    lines[0]["drafter"]["title"] = lines[0]["verifier"]["title"] = words[1]
    page.evaluate("text => view.feed(text)", ndjson(lines))
    for step in range(12):
        show(page, step)
    tags = page.evaluate("[...new Set([...document.querySelectorAll('*')].map(e => e.tagName))]")
    assert set(tags) - set(allowed) <= {"s", "S", "circle"}
    assert page.locator("iframe, img, b, i, a, [onerror], [onload], [onmouseover]").count() == 0


def test_a_matrix_of_a_thousand_cells_is_a_few_elements_and_can_be_read_by_keyboard(replay):
    size = 32
    names = [{"token": n, "piece": f" w{n}"} for n in range(size)]
    values = [[row * size + column for column in range(size)] for row in range(size)]
    matrix = {"kind": "matrix", "title": "Counts", "rows": names, "columns": names}
    page = replay(with_exhibits([matrix | {"values": values}]))
    show(page, 1)
    assert page.locator(".ds-matrix *").count() < 100
    box = page.locator("[data-kind=matrix] .ds-exhibit-box")
    box.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    assert page.locator(".ds-readout").inner_text() == f"␣w1 → ␣w3: {size + 3}"
    assert page.evaluate("view.step") == 1, "the arrow keys read the matrix and do not step"


def test_exhibits_are_drawn_once_a_frame_and_only_where_they_change(replay):
    lines = exhibited(Toy(steps=8))
    for step in lines[2:-1]:
        step["drafter"]["exhibits"][:2] = copy.deepcopy(lines[1]["drafter"]["exhibits"][:2])
    page = replay(ndjson(lines))
    page.evaluate(FRAME)
    same, drawn = page.evaluate(
        """() => new Promise((answer) => {
          const figures = [...document.querySelectorAll('.ds-exhibit')];
          let drawn = 0;
          new MutationObserver((news) => { drawn += news.filter((one) => one.addedNodes.length).length; })
            .observe(document.querySelector('.ds-exhibit-row'), {childList: true});
          for (let step = 0; step < 8; step++) view.goto(step);
          requestAnimationFrame(() => setTimeout(() => answer([figures.map((one) => one.isConnected), drawn]), 0)); })"""
    )
    assert same[:2] == [True, True] and not any(same[2:-1])
    assert drawn == len(KINDS) - 2


def test_axe_finds_nothing(replay):
    page = replay(ndjson(merged(overlapped(exhibited()))))
    show(page, 3)
    page.locator(".ds-source").first.click()
    assert violations_in_both_schemes(page) == []


def test_compare_shows_them_in_a_fold(replay_race):
    from viz.race import joined

    one = ndjson(merged(overlapped(exhibited(Toy(steps=6)))))
    page = replay_race(joined({"one": one, "plain": Toy(style="none", steps=6).ndjson()}))
    lane = page.locator("[data-lane=one]")
    lane.get_by_role("button", name="Details").click()
    assert lane.locator(".ds-exhibit").count() == 0, "closed, nothing is drawn"
    lane.locator("summary").click()
    until(page, "document.querySelectorAll('[data-lane=one] .ds-exhibit').length > 0")
    assert lane.locator(".ds-exhibit").count() == len(KINDS) + 1
    assert lane.locator(".ds-tracks").is_visible() and lane.locator(".ds-sources").is_visible()
    other = page.locator("[data-lane=plain]")
    for part in (".ds-exhibits", ".ds-tracks", ".ds-sources"):
        assert other.locator(part).is_hidden()


def test_every_line_of_the_builder_fits_the_schema():
    from engine.trace import read_trace

    words = [word[:200] or " " for word in HOSTILE if "\x00" not in word]
    lines = merged(overlapped(exhibited(Toy(steps=4), words)))
    assert read_trace(ndjson(lines)).steps[0] == json.loads(json.dumps(lines[1]))
