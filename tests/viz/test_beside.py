"""Two runs of one prompt, shown beside each other."""

import json

import pytest

from tests.axe import violations_in_both_schemes
from tests.viz.builder import Toy
from tests.viz.conftest import until
from tests.viz.hostile import HOSTILE
from viz.bundle import bundle_css, bundle_js
from viz.export import embedded

TREE = Toy(style="tree", rule="greedy", steps=9, temperature=0, seed=1)
OTHER = Toy(key="other", style="chain", rule="greedy", steps=14, temperature=0, seed=2)
PAGE = """<!DOCTYPE html><html lang="en"><head><title>beside</title><style>{css}</style></head>
<body><main><h1>beside</h1><div id="view"></div></main>
<script id="runs" type="application/json">{runs}</script>
<script>{js}
const runs = JSON.parse(document.getElementById("runs").textContent);
const view = Draftscope.mountBeside(document.getElementById("view"));
</script></body></html>"""


@pytest.fixture
def pair(watched, tmp_path):
    """pair(first, second): a page that was fed both runs."""

    def open_(
        first: str, second: str, feed: str = "view.feedFirst(runs[0]); view.feed(runs[1])", **o
    ):
        file = tmp_path / "beside.html"
        runs = embedded([first, second])
        file.write_text(PAGE.format(css=bundle_css(), js=bundle_js(), runs=runs), "utf-8")
        page = watched(**o).page
        page.goto(file.as_uri())
        page.evaluate(feed)
        return page

    return open_


def tokens(text: str) -> list[int]:
    return [
        token
        for entry in map(json.loads, text.splitlines())
        if entry["kind"] == "step"
        for token in entry["output"]["tokens"]
    ]


def summary(text: str) -> dict:
    return json.loads(text.splitlines()[-1])


def cells(page, row: str) -> list[str]:
    named = page.get_by_role("rowheader", name=row, exact=True)
    return page.locator(".ds-outcome tr").filter(has=named).locator("td").all_inner_texts()


def test_the_first_differing_token_is_marked_in_both(pair):
    first, second = TREE.ndjson(), OTHER.ndjson()
    page = pair(first, second)
    both = zip(tokens(first), tokens(second), strict=False)
    parts = next(i for i, (a, b) in enumerate(both) if a != b)
    until(page, f"view.parts === {parts}")
    until(page, f"view.position === {parts}")  # it opens at this token
    assert f"part at token {parts + 1}" in page.inner_text(".ds-same")
    for lane in ("first", "what-if"):
        marked = page.locator(f"[data-run={lane}] .text [data-differs]")
        assert [m.get_attribute("data-index") for m in marked.all()] == [str(parts)]
        # and this token is the one explained
        chosen = page.locator(f"[data-run={lane}] .tree [data-selected]")
        assert chosen.get_attribute("data-token-text") == marked.first.text_content()
    a, b = summary(first), summary(second)
    assert cells(page, "steps")[:2] == [str(a["steps"]), str(b["steps"])]
    change = b["mean_accepted"] - a["mean_accepted"]
    sign = "+" if change > 0 else "−"
    assert cells(page, "tokens a step")[2] == f"{sign}{abs(change):.2f}"
    ratio = b["tokens_per_second"] / a["tokens_per_second"]
    assert cells(page, "tokens a second")[2] == f"{ratio:.2f}×"
    rows = {row["depth"]: row for row in a["acceptance_by_depth"]}
    kept = round(100 * rows[1]["accepted"] / rows[1]["reached"])
    assert cells(page, "kept at depth 1")[0] in {f"{kept} %", f"{kept + 1} %"}


def test_both_follow_one_axis_of_positions(pair):
    first, second = TREE.ndjson(), OTHER.ndjson()
    page = pair(first, second)
    for position in (0, 5, 11):
        page.evaluate(f"view.seek({position})")
        until(page, f"document.querySelector('.ds-race-range').value == {position + 1}")
        for lane in ("first", "what-if"):
            # the step on the screen is the one that wrote this token
            assert page.locator(
                f"[data-run={lane}] .text [data-index='{position}'][data-now]"
            ).count()
    page.locator(".ds-race-range").press("ArrowRight")
    until(page, "view.position === 12")
    page.get_by_role("button", name="Where they part").click()
    until(page, "view.position === view.parts")


def test_the_same_text_is_said_to_be_the_same(pair):
    text = TREE.ndjson()
    page = pair(text, text)
    assert page.inner_text(".ds-same") == "The same text, token for token."
    assert page.evaluate("view.position") == len(tokens(text)) - 1
    assert page.locator("[data-differs]").count() == 0
    assert set(cells(page, "tokens a step")[2:]) == {"no change"}
    assert page.get_by_role("button", name="Where they part").count() == 0


def test_the_parts_of_both_stand_level(pair):
    page = pair(TREE.ndjson(), OTHER.ndjson())
    long = "'what this lane was set to '.repeat(12)"
    page.evaluate(f"document.querySelector('.ds-lane-rule .ds-setting').textContent = {long}")
    for part in (".timeline", ".tree", ".text", ".inspector"):
        tops = page.locator(f".ds-pair {part}").evaluate_all(
            "(both) => both.map((one) => one.getBoundingClientRect().top)"
        )
        assert len(tops) == 2 and tops[0] == tops[1], part


def test_times_of_another_machine_are_not_compared(pair):
    text = TREE.ndjson()
    page = pair(text, text, "view.feedFirst(runs[0], {elsewhere: true}); view.feed(runs[1])")
    assert cells(page, "tokens a second")[2] == "timed elsewhere"


def test_a_lossy_rule_wears_the_word(pair):
    run, *rest = OTHER.lines()
    run["verifier"]["lossless"] = False
    lossy = "".join(json.dumps(entry) + "\n" for entry in (run, *rest))
    page = pair(TREE.ndjson(), lossy)
    assert page.inner_text("[data-run=what-if] .ds-badge") == "lossy"
    assert "lossy" in page.inner_text(".ds-same")
    assert page.locator("[data-run=what-if] .ds-setting[data-changed]").count()


def test_it_grows_while_the_second_runs_and_goes_with_the_first(pair):
    page = pair(TREE.ndjson(), OTHER.ndjson(), "view.feedFirst(runs[0])")
    assert not page.locator(".ds-beside").is_visible()
    page.evaluate(
        """async () => {
          const lines = runs[1].trim().split('\\n').map(line => line + '\\n');
          view.setState('running');
          for (let k = 1; k < lines.length; k++) {
            view.feed(lines.slice(0, k).join(''));
            await new Promise(requestAnimationFrame);
          }
        }"""
    )
    assert page.locator(".ds-beside").is_visible()
    assert not page.locator(".ds-outcome-card").is_visible(), "no table before the end"
    page.evaluate("view.feed(runs[1]); view.setState('done')")
    until(page, "document.querySelector('[data-run=what-if] .tree').dataset.state === 'done'")
    assert page.locator(".ds-outcome-card").is_visible()
    page.evaluate("view.feedFirst('')")
    assert not page.locator(".ds-beside").is_visible()


def test_hostile_words_stay_words(pair):
    settings = {"words": list(HOSTILE), "prompt": " ".join(HOSTILE), "pieces": list(HOSTILE)}
    key = "<img src=x onerror=alert(1)>"
    first, second = (
        Toy(steps=60, budget=10, cut=20, key=key, seed=seed, **settings) for seed in (3, 4)
    )
    page = pair(first.ndjson(), second.ndjson())
    seen = page.evaluate(
        """async () => {
          const seen = new Set();
          for (let token = 0; token < 140; token += 2) {
            view.seek(token);
            await new Promise(requestAnimationFrame);
            for (const g of document.querySelectorAll('[data-token-text]')) seen.add(g.dataset.tokenText);
          }
          return [...seen]; }"""
    )
    assert len(set(seen) & set(HOSTILE)) >= 30
    assert "part at token" in page.inner_text(".ds-same")
    assert page.locator("iframe, img, b, i, a, [onerror], [onload], [onmouseover]").count() == 0
    assert page.locator(".ds-beside script").count() == 0


def test_axe_finds_nothing_and_phones_need_not_scroll(pair):
    page = pair(TREE.ndjson(), OTHER.ndjson())
    assert violations_in_both_schemes(page) == []
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") == 390
