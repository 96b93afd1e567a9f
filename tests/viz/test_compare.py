"""Lanes side by side on one clock."""

import pytest

from tests.axe import violations_in_both_schemes
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
    page.wait_for_selector("[data-lane='chain'] .tree g[data-node]", state="attached")
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
    assert not page.locator(".ds-same").inner_text(), "no verdict before the end"
    page.evaluate("view.seek(1e9)")
    assert page.locator(".ds-same").inner_text()


def test_the_buttons_of_the_race_do_what_they_say(race):
    page, _ = race()
    page.evaluate("view.feed(lanes)")

    def press(name):
        page.get_by_role("button", name=name, exact=True).click()

    end = page.evaluate("view.milliseconds")
    knob = page.get_by_label("Compute time")
    press("End of the race")
    assert page.locator(".ds-outcome tbody tr").count() == len(LANES)
    assert knob.input_value() == "1000"
    press("Start of the race")
    assert knob.input_value() == "0"
    assert page.locator("[data-lane] .text [data-index]").count() == 0
    pace = page.get_by_label("Pace of the race")
    pace.select_option("slower100")
    press("Play the race")
    until(page, "Number(document.querySelector('.ds-race-range').value) > 0")
    press("Pause the race")
    held = knob.input_value()
    page.wait_for_timeout(300)
    assert knob.input_value() == held and float(held) < 1000
    pace.select_option("real")
    press("Play the race")
    until(page, "document.querySelector('.ds-race-range').value === '1000'")
    knob.fill("500")
    assert abs(page.evaluate("view.milliseconds") - end / 2) < end / 500
    written = page.locator("[data-lane=none] .text [data-index]").count()
    assert 0 < written < 20


def test_lanes_keep_their_height_while_the_race_plays(race):
    page, _ = race()
    page.set_viewport_size({"width": 1000, "height": 900})
    page.evaluate("view.feed(lanes)")
    page.evaluate("new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)))")
    tops = "[...document.querySelectorAll('[data-lane]')].map(e => e.getBoundingClientRect().top)"
    end = page.evaluate("view.milliseconds")
    seen = []
    for part in (0.05, 0.3, 0.6, 1):
        page.evaluate(f"view.seek({end * part})")
        seen.append(page.evaluate(tops))
    assert all(each == seen[0] for each in seen)


def test_two_lanes_of_one_drafter_are_told_apart_and_measured_against_plain(race):
    page, _ = race()
    page.evaluate("view.feed({chain: lanes.chain, 'chain-2': lanes.chain, none: lanes.none})")
    names = page.locator("[data-lane] .ds-lane-name").all_inner_texts()
    assert names == ["toy (chain)", "toy (chain-2)", "none"], "alike in all else, by their lanes"
    heads = page.locator("[data-lane] .ds-lane-rule").all_inner_texts()
    assert heads[0].startswith("depth 4; rule greedy")
    rows = page.locator(".ds-outcome tbody tr")
    assert rows.locator("th").all_inner_texts() == names
    ratios = [row.locator("td").nth(1).inner_text() for row in rows.all()]
    assert ratios[2] == "1.00×" and ratios[0] == ratios[1] != "–"
    page.evaluate("view.feed({chain: lanes.chain, tree: lanes.tree})")
    assert rows.count() == 2
    assert rows.first.locator("td").nth(1).inner_text() == "–"


def test_where_texts_part_is_said_with_the_margin(race):
    page, _ = race()
    page.evaluate("view.feed(lanes)")
    said = page.locator(".ds-same").inner_text()
    assert "part at token" in said and "two best tokens were" in said
    index = int(said.split("token ")[1].split(":")[0]) - 1
    marked = page.locator(f".text [data-differs][data-index='{index}']")
    assert marked.count() == page.locator(".text [data-differs]").count() > 1


def test_a_crowd_of_ignored_tokens_is_folded_in_a_lane(race):
    page, _ = race()
    crowd = Toy(steps=4, budget=64, depth=8, width=4, rule="greedy").ndjson()
    page.evaluate("text => { view.feed({crowd: text, tree: lanes.tree}); }", crowd)
    page.evaluate("view.seek(1e9)")
    node = "[data-lane='crowd'] g[data-node]"
    hidden, fold = page.locator(f"{node}[display=none]"), "[data-lane='crowd'] g[data-fold]"
    before = hidden.count()
    assert page.locator(node).count() == 64 and before > 20
    assert page.locator(f"{node}[display=none]:not([data-status='ignored'])").count() == 0
    told = page.locator(f"{fold} text").all_text_contents()
    assert sum(int(words.removeprefix("+")) for words in told) == before
    page.locator(fold).first.dispatch_event("click")
    assert hidden.count() < before
    page.locator(f"{fold}[aria-expanded=true]").dispatch_event("click")
    assert hidden.count() == before


def test_the_newest_token_is_in_sight_whatever_the_width(race):
    page, _ = race(reduced_motion="reduce")
    page.set_viewport_size({"width": 700, "height": 900})
    page.evaluate("text => view.feed({one: text, two: text})", Toy(steps=90).ndjson())
    seen = """[...document.querySelectorAll('.text')].every((box) => {
      const token = [...box.querySelectorAll('[data-index]')].at(-1).getBoundingClientRect();
      const frame = box.getBoundingClientRect();
      return token.top >= frame.top && token.bottom <= frame.bottom + 1;
    })"""
    until(page, seen)
    page.set_viewport_size({"width": 1100, "height": 900})
    until(page, seen)


def test_going_back_and_forth_leaves_the_text_as_it_was(race):
    page, _ = race()
    page.evaluate("view.feed(lanes)")
    written = "[...document.querySelectorAll('.text')].map(t => t.textContent)"
    whole = page.evaluate(written)
    page.evaluate("for (let i = 0; i < 60; i++) view.seek(((i * 37) % 100) * 0.9)")
    page.evaluate("view.seek(1e9)")
    assert page.evaluate(written) == whole
    assert page.locator("[data-lane='none'] .text [data-now]").count() == 1


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


def test_the_result_waits_for_the_lanes(race):
    """While the lanes are drawn, the table counts what they show; the verdict stands once they are at their end."""
    page, _ = race()
    shown = """() => ({ verdict: getComputedStyle(document.querySelector('.ds-verdict')).visibility,
      passes: [...document.querySelectorAll('.ds-outcome tbody td:nth-child(5)')].map((cell) => cell.textContent),
      lanes: [...document.querySelectorAll('.ds-lane-numbers')].map((one) => one.textContent.match(/ in (\\d+)/)?.[1]) })"""
    seen = page.evaluate(
        """async (shown) => {
          const seen = [], look = eval(shown), part = {};
          const cut = (more) => { for (const [lane, text] of Object.entries(lanes)) part[lane] = more(text); return part; };
          const frame = () => new Promise(requestAnimationFrame);
          view.setState('running');
          view.feed(cut((text) => text.split('\\n').slice(0, 8).join('\\n') + '\\n'));
          for (let i = 0; i < 3; i++) { await frame(); await frame(); seen.push(look()); }
          view.feed(cut((text) => text));
          seen.push(look());
          return seen;
        }""",
        shown,
    )
    for one in seen[:-1]:
        assert one["passes"] == one["lanes"] != []
    assert [one["verdict"] for one in seen] == ["hidden"] * 3 + ["visible"]
    assert seen[-1]["lanes"] == ["20", "12", "9", "14"]
    page.evaluate("view.seek(view.milliseconds / 2)")
    assert page.evaluate(shown)["verdict"] == "hidden"


@pytest.mark.parametrize(
    ("speed", "said"),
    [
        (80, "Is it faster? No: the best of the drafters, toy, reaches 0.80× the speed."),
        (95.4, "Is it faster? No: the best of the drafters, toy, is about as fast (0.95×)."),
        (102, "Is it faster? No: the best of the drafters, toy, is about as fast (1.02×)."),
        (210, "Fastest: toy, 2.1 times as fast as plain decoding: "),
    ],
)
def test_a_drafter_wins_only_by_more_than_the_noise(race, speed, said):
    page, _ = race()
    page.evaluate(
        """(speed) => {
          const slow = (text, speed) => text.replace(/"tokens_per_second":[^,}]*/, `"tokens_per_second":${speed}`);
          view.feed({none: slow(lanes.none, 100), chain: slow(lanes.chain, speed)});
        }""",
        speed,
    )
    assert page.locator(".ds-winner").inner_text().startswith(said)


def test_axe_finds_nothing(race):
    page, _ = race()
    page.evaluate("view.feed(lanes); view.seek(40)")
    assert violations_in_both_schemes(page) == []
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") == 390
