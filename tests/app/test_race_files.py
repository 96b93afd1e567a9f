"""Compare: a race is saved as a file and opened again; a file that is no race is refused."""

import pytest

from app.menu import opening_race
from presets import trace_text
from tests.viz.builder import Toy
from tests.viz.hostile import HOSTILE
from viz.race import joined, split


@pytest.fixture
def compare(visit):
    """Compare on a page on which nothing moves, showing the race made earlier."""
    visitor = visit("/?tab=compare", reduced_motion="reduce")
    shown(visitor, opening_race())
    return visitor


# parsed line by line, because two writers of JSON may write one number in two ways
SHOWN = """race => {
  const read = (text) => JSON.stringify(text.trim().split('\\n').map((line) => JSON.parse(line)));
  return read(DraftscopePage.trace('compare') || '0') === read(race);
}"""


def shown(visitor, race: str) -> None:
    visitor.page.wait_for_function(SHOWN, arg=race)


def bring(visitor, folder, text: str) -> None:
    file = folder / "race.ndjson"
    file.write_bytes(text.encode())
    visitor.page.set_input_files("#open-race", file)


ALARM = "document.querySelector('#compare-status [role=alert]').innerText"


def told(visitor, folder, text: str, words: str) -> None:
    """Open a file and wait until the alarm holds these words. The previous alarm must not hold them: otherwise the wait
    would end at once, and the next file would come while this one is still being opened."""
    assert words not in visitor.page.evaluate(ALARM)
    bring(visitor, folder, text)
    visitor.page.wait_for_function(f"words => {ALARM}.includes(words)", arg=words)


@pytest.mark.journey
def test_a_race_is_saved_opened_again_and_saved_as_a_page(compare, tabs, tmp_path):
    page = compare.page
    with page.expect_download() as download:
        page.click("#save-race")
    assert download.value.suggested_filename == "draftscope-race.ndjson"
    saved = download.value.path().read_bytes().decode()
    assert saved == opening_race()
    lanes = split(saved)
    two = joined({lane: lanes[lane] for lane in list(lanes)[1:3]})
    bring(compare, tmp_path, two)
    shown(compare, two)
    page.wait_for_function("document.querySelectorAll('[data-lane]').length === 2")
    assert "Opened" in page.inner_text("#compare-status")
    page.wait_for_selector("#compare-figures .js-plotly-plot")
    with page.expect_download() as download:
        page.click("#race-save-page")
    file = tmp_path / "race.html"
    download.value.save_as(file)
    alone = tabs.open(offline=True)
    alone.goto(file.as_uri())
    alone.wait_for_selector("[data-lane] .text [data-index]")
    assert alone.locator("[data-lane]").count() == 2
    tabs.close(alone)


def test_what_is_no_race_is_told_and_the_picture_stays(compare, tmp_path):
    page, race = compare.page, opening_race()
    run = trace_text("story-tree")
    for text, words in (
        (run, "opens under Watch"),
        ("no race at all", "no trace of a run"),
        (race[: len(race) // 2] + "\n", "Line"),
        (joined({"one": run, "two": Toy(steps=2).ndjson()}), "not the same in all lanes"),
        (race.replace('"milliseconds":{"draft":', '"milliseconds":{"draft":-', 1), "Lane none"),
    ):
        told(compare, tmp_path, text, words)
        assert compare.trace and page.locator("[data-lane]").count() == 5
    # and Watch says that a race opens under Compare
    file = tmp_path / "race.ndjson"
    file.write_text(race, "utf-8")
    page.get_by_role("tab", name="Watch").click()
    page.set_input_files("#open-trace", file)
    compare.wait_state("error")
    assert "open it under Compare" in compare.alarm


def test_hostile_words_in_a_race_stay_words(compare, tmp_path):
    page = compare.page
    tags = "[...new Set([...document.querySelectorAll('#compare-view *')].map(e => e.tagName))]"
    before = set(page.evaluate(tags))
    settings = {"words": list(HOSTILE), "prompt": " ".join(HOSTILE), "pieces": list(HOSTILE)}
    toy = Toy(steps=20, cut=20, key="<img src=x onerror=alert(1)>", **settings).ndjson()
    race = joined({"one": toy, "two": toy})
    bring(compare, tmp_path, race)
    page.wait_for_selector("[data-lane=two] .text [data-index]")
    page.wait_for_function("document.querySelectorAll('.ds-outcome tbody tr').length >= 2")
    page.wait_for_selector("#compare-figures .js-plotly-plot")
    assert page.locator("img, iframe, #compare-view script, [onerror], [onload]").count() == 0
    assert set(page.evaluate(tags)) - before <= {"circle", "s", "S"}
