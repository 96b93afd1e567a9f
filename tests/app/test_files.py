"""Runs and races as files: they are saved, opened again with their settings, and refused in a sentence where they are none."""

import pytest

from app.example_menu import opening_race
from engine.trace import read_trace
from presets import races, trace_text
from tests.app.visitor import clear, covered, wait_figures
from tests.viz.builder import Toy
from tests.viz.hostile import HOSTILE
from viz.race import joined, split

OWN = "Your own"
# parsed line by line, because two writers of JSON may write one number in two ways
SHOWN = """([room, text]) => {
  const read = (text) => JSON.stringify(text.trim().split('\\n').map((line) => JSON.parse(line)));
  return read(DraftscopePage.trace(room) || '0') === read(text);
}"""


def shown(page, text: str, room: str = "compare") -> None:
    page.wait_for_function(SHOWN, arg=[room, text])


def bring(page, text: str, opener: str = "open-race") -> None:
    file = {"name": "brought.ndjson", "mimeType": "text/plain", "buffer": text.encode()}
    page.set_input_files(f"#{opener}", file)


def refused(page, text: str, words: str, room: str = "compare") -> None:
    """Open a file and wait until the alarm holds these words. The previous alarm must not hold them: otherwise the wait
    would end at once, and the next file would come while this one is still being opened."""
    alarm = page.locator(f"#{room}-status [role=alert]")
    assert words not in alarm.inner_text()
    bring(page, text, "open-race" if room == "compare" else "open-trace")
    alarm.filter(has_text=words).wait_for()


@pytest.mark.journey
def test_a_run_is_opened_with_its_settings_and_what_is_none_changes_nothing(visit):
    visitor = visit("/")
    page, text = visitor.page, trace_text("edit-lookup")
    clear(page)
    bring(page, text, "open-trace")
    shown(page, text, "watch")
    clear(page)
    page.wait_for_function(
        "own => document.querySelector('.pg-offer .pg-note').textContent.startsWith(own)", arg=OWN
    )
    assert page.locator("#preset :checked").count() == 0
    trace = read_trace(text)
    assert page.input_value("#prompt textarea") == trace.run["prompt"]["text"]
    assert page.input_value("#drafter input").endswith("(prompt_lookup)")
    for wrong, words in (
        ("this is\nno trace\n", "is not valid JSON"),
        ('{"kind":"run","schema":1}\n', "does not fit the schema"),
        (opening_race(), "open it under Compare"),
        ("", "no trace of a run"),
    ):
        refused(page, wrong, words, "watch")
        clear(page)
        assert page.locator("#tree g[data-node]").count(), "the picture is left as it was"
    visitor.type_prompt("Something else")
    page.locator("#watch-status [role=alert]:not(:empty)").wait_for(state="detached")
    visitor.type_prompt(trace.run["prompt"]["text"])
    clear(page)
    assert visitor.run() == "done"
    again = read_trace(visitor.trace())
    assert {k: again.run[k] for k in ("prompt", "sampling")} == {
        k: trace.run[k] for k in ("prompt", "sampling")
    }
    for made in ("drafter", "verifier"):
        assert {k: again.run[made][k] for k in ("key", "options")} == {
            k: trace.run[made][k] for k in ("key", "options")
        }
    assert again.summary["text"] == trace.summary["text"]


@pytest.mark.journey
def test_a_race_is_saved_opened_again_and_saved_as_a_page(visit, tabs, tmp_path):
    visitor = visit("/?tab=compare")
    page, whole = visitor.page, opening_race()
    shown(page, whole)
    first = ".pg-racer:nth-child(1) .drafter"
    visitor.pick("dflash", first)
    page.wait_for_function("document.querySelector('#race-preset input').value === 'Your own'")
    visitor.pick(races()[0].lanes[0].drafter, first)
    page.wait_for_function(
        "title => document.querySelector('#race-preset input').value === title",
        arg=races()[0].title,
    )
    with page.expect_download() as download:
        page.click("#save-race")
    assert download.value.suggested_filename == "draftscope-race.ndjson"
    assert download.value.path().read_bytes().decode() == whole
    lanes = split(whole)
    two = joined({lane: lanes[lane] for lane in ("dyspec", "none")})
    bring(page, two)
    shown(page, two)
    page.wait_for_function("document.querySelector('#race-preset input').value === 'Your own'")
    clear(page, "compare")
    page.wait_for_function("document.querySelectorAll('[data-lane]').length === 2")
    assert "Opened" in page.inner_text("#compare-status")
    chosen = page.locator(".pg-racer [role=combobox]").evaluate_all("all => all.map(e => e.value)")
    assert [name.rpartition("(")[2] for name in chosen] == ["dyspec)", "none)"]
    wait_figures(page, "compare")
    with page.expect_download() as download:
        page.click("#race-save-page")
    file = tmp_path / "race.html"
    download.value.save_as(file)
    alone = tabs.open(offline=True)
    alone.goto(file.as_uri())
    alone.wait_for_selector("[data-lane] .text [data-index]")
    assert alone.locator("[data-lane]").count() == 2
    tabs.close(alone)
    run = trace_text("story-tree")
    for text, words in (
        (run, "opens under Watch"),
        ("no race at all", "no trace of a run"),
        (whole[: len(whole) // 2] + "\n", "Line"),
        (joined({"one": run, "two": Toy(steps=2).ndjson()}), "not the same in all lanes"),
        (whole.replace('"milliseconds":{"draft":', '"milliseconds":{"draft":-', 1), "Lane none"),
    ):
        refused(page, text, words)
        clear(page, "compare")
        assert page.locator("[data-lane]").count() == 2, "the picture stays"
    page.fill("#race-prompt textarea", "Something else")
    page.locator("#compare-status [role=alert]:not(:empty)").wait_for(state="detached")
    covered(page, "the prompt", room="compare")
    tags = "[...new Set([...document.querySelectorAll('#compare-view *')].map(e => e.tagName))]"
    before = set(page.evaluate(tags))
    settings = {"words": list(HOSTILE), "prompt": " ".join(HOSTILE), "pieces": list(HOSTILE)}
    toy = Toy(steps=20, cut=20, key="<img src=x onerror=alert(1)>", **settings).ndjson()
    bring(page, joined({"one": toy, "two": toy}))
    page.wait_for_selector("[data-lane=two] .text [data-index]")
    page.wait_for_function("document.querySelectorAll('.ds-outcome tbody tr').length >= 2")
    assert (
        page.locator(
            "img:not(.pg-asked-picture), iframe, #compare-view script, [onerror], [onload]"
        ).count()
        == 0
    )
    assert set(page.evaluate(tags)) - before <= {"circle", "s", "S"}
