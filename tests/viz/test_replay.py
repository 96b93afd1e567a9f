"""The exported page in a real browser: it replays, scrubs and explains, and requests nothing."""

import json

import pytest

from engine.trace import read_trace
from presets import trace_text
from tests.axe import violations_in_both_schemes
from tests.viz.builder import Toy
from tests.viz.conftest import until
from tests.viz.hostile import HOSTILE

STYLES = [
    Toy(style="tree"),
    Toy(style="chain"),
    Toy(style="iid", width=5),
    Toy(style="one_hot", depth=5),
    Toy(style="none"),
    Toy(rule="greedy"),
    Toy(rule="sampler_match"),
]


def lines(toy: Toy) -> tuple[dict, list[dict], dict]:
    run, *steps, summary = (json.loads(line) for line in toy.ndjson().splitlines())
    return run, steps, summary


DRAWN = """
(step) => {
  view.goto(step);
  const all = (what) => [...document.querySelectorAll(what)];
  return {
    nodes: all('#tree svg g[data-node]').map(g => [Number(g.dataset.node), g.dataset.status, g.dataset.tokenText]),
    text: all('#text [data-index]').map(s => s.textContent),
    final: document.querySelector('#tree [data-final]').dataset.final,
    sentence: document.querySelector('#inspector .ds-sentence').textContent,
  };
}
"""


@pytest.mark.parametrize("toy", STYLES, ids=lambda toy: f"{toy.style}-{toy.rule}")
def test_every_step_is_drawn_as_the_trace_says(replay, toy):
    text = toy.ndjson()
    _, *steps, summary = (json.loads(line) for line in text.splitlines())
    page = replay(text)
    written = []
    for step in steps[:5]:
        drawn = page.evaluate(DRAWN, step["index"])
        nodes = step["nodes"]
        assert sorted(drawn["nodes"]) == [
            [i, s, t] for i, (s, t) in enumerate(zip(nodes["status"], nodes["piece"], strict=True))
        ]
        written += step["output"]["pieces"]
        assert drawn["text"] == written
        assert drawn["final"] == step["output"]["final"]
        assert drawn["sentence"]
    assert page.locator("#timeline [data-step]").count() == summary["steps"]
    assert page.locator("#tree").get_attribute("data-state") == "done"


def test_keys_and_drag_scrub_and_space_plays(replay):
    page = replay(Toy(steps=20).ndjson())
    for key, step in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1)):
        page.keyboard.press(key)
        assert page.evaluate("view.step") == step
    page.locator("#timeline").focus()
    page.keyboard.press("End")
    assert page.evaluate("view.step") == 19
    page.keyboard.press("Home")
    assert page.locator("#timeline").get_attribute("aria-valuenow") == "1"
    page.locator("#timeline [data-step='7']").click()
    assert page.evaluate("view.step") == 7
    box = page.locator("#timeline svg").bounding_box()
    page.mouse.move(box["x"] + 5, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] / 2, steps=4)
    page.mouse.up()
    assert 8 <= page.evaluate("view.step") <= 13
    page.evaluate("view.goto(3); view.setPace('real')")
    page.keyboard.press("Space")
    until(page, "view.step === 19")


def test_the_buttons_of_the_replay_do_what_they_say(replay):
    page = replay(Toy(steps=9).ndjson())

    def press(name):
        page.get_by_role("button", name=name, exact=True).click()

    for name, step in (
        ("Last step", 8), ("Previous step", 7), ("First step", 0), ("Next step", 1),
    ):  # fmt: skip
        press(name)
        assert page.evaluate("view.step") == step
    pace = page.get_by_label("Pace", exact=True)
    pace.select_option("explain")
    press("Play")
    until(page, "view.step === 2")
    assert page.locator("#tree svg").get_attribute("data-stage") in ("draft", "judge", "commit")
    press("Pause replay")
    assert not page.locator("#tree svg").get_attribute("data-stage"), "all of the step is shown"
    standing = page.evaluate("view.step")
    page.wait_for_timeout(1200)
    assert page.evaluate("view.step") == standing < 8
    pace.select_option("real")
    press("Play")
    until(page, "view.step === 8")
    large = page.get_by_role("button", name="Large type")
    size = "document.querySelector('#text [data-index]').getBoundingClientRect().height"
    before = page.evaluate(size)
    large.click()
    assert large.get_attribute("aria-pressed") == "true"
    assert page.evaluate(size) > 1.2 * before
    large.click()
    assert page.evaluate(size) == before


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_moves_while_the_text_grows(replay, width):
    page = replay(Toy(steps=40, budget=20).ndjson())
    page.set_viewport_size({"width": width, "height": 900})
    phone = str(width < 520).lower()
    until(page, f"document.querySelector('.ds').hasAttribute('data-phone') === {phone}")
    places = "['tree', 'timeline', 'text', 'inspector'].map(id => { const box = document.getElementById(id).getBoundingClientRect(); return [box.top, box.height]; })"
    page.evaluate("view.goto(0)")
    first = page.evaluate(places)
    for step in (7, 20, 39):
        page.evaluate(f"view.goto({step})")
        now = page.evaluate(places)
        assert now[:2] == first[:2], "the tree and the timeline"
        if width == 1280:
            assert now == first


def test_a_click_on_a_node_says_why(replay):
    toy = Toy(steps=8)
    _, steps, _ = lines(toy)
    page = replay(Toy(steps=8).ndjson())
    for step in steps[:4]:
        page.evaluate(f"view.goto({step['index']})")
        for node, status in enumerate(step["nodes"]["status"][:6]):
            page.locator(f"#tree g[data-node='{node}']").click()
            shown = page.locator("#inspector").inner_text()
            assert status in shown
            sentence = page.locator("#inspector .ds-sentence").inner_text()
            assert sentence.endswith(".") and len(sentence) > 30
            if status != "ignored":
                assert status in sentence and "coin" in sentence or "sure to be kept" in sentence


def test_text_links_back_to_its_step_and_node(replay):
    page = replay(Toy(steps=10).ndjson())
    page.evaluate("view.goto(9)")
    page.locator("#text [data-index='4']").click()
    step = page.evaluate("view.step")
    first = page.evaluate(f"view.model.steps[{step}].view.firstIndex")
    assert first <= 4
    selected = page.locator("#tree [data-selected]")
    assert selected.get_attribute("data-status") in ("accepted", "bonus", "recovered")
    page.locator("#text [data-index='4']").hover()
    assert page.locator("#text [data-hover]").get_attribute("data-index") == "4"
    assert page.locator("#tree [data-hover]").count() == 1


def test_a_finished_trace_plays_by_itself_and_stands_still_where_that_is_wished(replay, script):
    moving = replay(Toy(steps=4).ndjson(), still=False)
    assert moving.get_by_label("Pace", exact=True).input_value() == "explain"
    moving.evaluate("view.setPace('brisk')")
    until(moving, "view.step === 3")
    still = replay(Toy(steps=4).ndjson(), still=False, reduced_motion="reduce")
    still.wait_for_timeout(200)
    telling = script.evaluate(
        """(text) => { const model = Draftscope.traceModel(); model.feed(text);
          return Draftscope.tellingStep(model.steps); }""",
        Toy(steps=4).ndjson(),
    )
    assert still.evaluate("view.step") == telling


def test_the_plainest_refusal_is_the_one_to_show(script):
    """A coin refused a guess that has no siblings, so nothing was taken from p before."""
    trace = trace_text("story-sampled")
    step = script.evaluate(
        """(text) => { const model = Draftscope.traceModel(); model.feed(text);
          return Draftscope.tellingStep(model.steps); }""",
        trace,
    )
    nodes, judged = (read_trace(trace).steps[step][name] for name in ("nodes", "judgements"))
    refused = [entry["node"] for entry in judged if 0 < entry["accept"] <= (entry["coin"] or 0)]
    assert any(nodes["parent"].count(nodes["parent"][node]) == 1 for node in refused)


PLAYED = """() => new Promise((answer) => {
  const seen = [], tree = document.querySelector('#tree'), all = (what) => [...tree.querySelectorAll(what)];
  const look = () => {
    const svg = tree.querySelector('svg'), stage = svg.dataset.stage;
    if (view.step > 0) { view.pause(); return answer(seen); }
    if (stage) seen.push({stage,
      told: all('[data-node]:not([data-look])').map((g) => Number(g.dataset.node)),
      open: all('[data-node][data-look=drafted]').map((g) => [Number(g.dataset.node), g.dataset.status, g.getAttribute('aria-label'), Boolean(g.querySelector('.ds-icon'))]),
      inspector: document.querySelector('#inspector').innerText, name: svg.getAttribute('aria-label')});
    setTimeout(look, 15);
  };
  view.setPace('slow'); view.goto(0); view.goto(view.model.steps.length - 1); view.play(); look();
})"""


def test_a_played_step_tells_no_verdict_before_its_turn(replay):
    toy = Toy(steps=3, seed=2)
    _, steps, _ = lines(toy)
    page = replay(toy.ndjson())
    seen = page.evaluate(PLAYED)
    assert {look["stage"] for look in seen} == {"draft", "judge", "commit"}
    statuses, order = steps[0]["nodes"]["status"], [j["node"] for j in steps[0]["judgements"]]
    assert {"accepted", "rejected"} & set(statuses)
    for look in seen:
        for node, status, name, icon in look["open"]:
            assert status == statuses[node], "what the page promises its readers stays"
            assert "drafted" in name and status not in name and not icon
        if look["stage"] == "draft":
            assert look["told"] == []
            assert not {"accepted", "rejected"} & set(look["inspector"].split())
            assert "kept" not in look["name"]
        if look["stage"] == "judge" and look["open"] and look["told"]:
            last = max(map(order.index, look["told"]))
            assert set(look["told"]) == set(order[: last + 1])
        if look["stage"] == "commit":
            assert look["open"] == []


FADING = """() => new Promise((answer) => {
  const faded = new Set(), words = (one) => [...one.childNodes].some((part) => part.nodeType === 3 && part.nodeValue.trim());
  const clear = (one) => !one || ((opacity) => (opacity < 0.01 || opacity > 0.99) && clear(one.parentElement))(Number(getComputedStyle(one).opacity));
  const look = () => {
    for (const one of document.querySelectorAll('.ds *')) if (words(one) && !clear(one)) faded.add(one.getAttribute('class') || one.tagName);
    if (view.step < 3) requestAnimationFrame(look); else answer([...faded]);
  };
  view.play();
  look();
})"""
"""The words that were half transparent in some frame of the first steps."""


def test_no_word_fades_while_verdicts_come(replay):
    page = replay(Toy(steps=6, rule="rejection").ndjson(), color_scheme="dark")
    assert page.evaluate(FADING) == []


def test_tokens_in_flight_end_with_their_step(replay):
    page = replay(Toy(steps=6).ndjson())
    flown = page.evaluate(
        """() => new Promise((answer) => {
          const ghosts = () => document.querySelectorAll('.ds-ghost').length;
          view.setPace('slow'); view.goto(5); view.play();
          const look = () => {
            if (!ghosts()) return setTimeout(look, 5);
            const before = ghosts();
            view.goto(3);
            setTimeout(() => answer([before, ghosts()]), 0);
          };
          look(); })"""
    )
    assert flown[0] > 0 and flown[1] == 0


def test_plain_decoding_wears_no_speculative_words(replay):
    page = replay(Toy(style="none", steps=5).ndjson())
    page.evaluate("view.goto(4)")
    title = page.inner_text(".ds-run-title")
    assert title.startswith("plain decoding by") and "drafts for" not in title
    said = page.inner_text("#inspector")
    assert "plain" in said and "Nothing was drafted" in said and "bonus" not in said
    for where in ("#tree [data-final]", "#text [data-index]", "#timeline .ds-gained path"):
        status = page.locator(
            f"{where}[data-status=bonus][data-look=plain], {where}[data-final=bonus]"
        )
        assert status.count() == page.locator(where).count() > 0
    colours = page.evaluate(
        """() => ['#timeline .ds-gained path', '#tree [data-final] .ds-shape'].map((what) => getComputedStyle(document.querySelector(what)).fill)"""
    )
    bonus = page.evaluate(
        "getComputedStyle(document.querySelector('.ds-legend [data-status=bonus] .ds-shape')).fill"
    )
    assert bonus not in colours


def test_the_end_of_a_text_has_one_name_wherever_it_stands(replay):
    page = replay(Toy(steps=4, words=["<|endoftext|>", "</s>"], rule="rejection").ndjson())
    page.evaluate("view.goto(3)")
    assert "⟨end⟩" in page.inner_text("#text") and "⟨end⟩" in page.inner_text("#inspector")
    rows = page.locator("#inspector .ds-bar-token").all_inner_texts()
    assert len(set(rows)) == len(rows), "two tokens that end a text are told apart"
    assert page.locator("#tree .ds-label", has_text="⟨end⟩").count()
    whole = page.locator(".ds").evaluate("(ds) => ds.outerHTML")
    shown = whole.replace(' data-token-text="&lt;|endoftext|&gt;"', "")
    assert "endoftext" not in shown and "/s&gt;" not in shown.replace('data-token-text="&lt;/s', "")


def test_icicle_and_zoom(replay):
    page = replay(Toy(steps=4, budget=14).ndjson())
    count = page.locator("#tree g[data-node]").count()
    page.get_by_role("button", name="Larger").click()
    page.get_by_role("button", name="Whole tree").click()
    page.get_by_role("button", name="Icicle").click()
    assert page.locator("#tree g.ds-cell[data-node]").count() == count
    assert "Width is the probability" in page.locator("#tree .ds-icicle-note").inner_text()
    page.locator("#tree g.ds-cell[data-node='0']").click()
    assert page.locator("#tree [data-selected]").get_attribute("data-node") == "0"
    page.get_by_role("button", name="by q").click()
    page.get_by_role("button", name="Tree", exact=True).click()
    assert page.locator("#tree g.ds-cell").first.is_hidden()


def test_axe_finds_nothing(replay):
    page = replay(Toy(steps=10, budget=20).ndjson())
    page.evaluate("view.goto(6)")
    for mode in ("Tree", "Icicle"):
        page.get_by_role("button", name=mode, exact=True).click()
        assert violations_in_both_schemes(page) == []


def test_hostile_strings_stay_text(replay):
    toy = Toy(
        steps=30,
        words=list(HOSTILE),
        prompt=" ".join(HOSTILE),
        pieces=list(HOSTILE),
        key="<b onclick=alert(1)>key</b>",
        cut=20,
        seed=3,
    )
    text = toy.ndjson()
    page = replay(text, title="</title><script>alert(1)</script>")
    allowed = page.evaluate("[...new Set([...document.querySelectorAll('*')].map(e => e.tagName))]")
    seen = page.evaluate(
        """() => {
          const seen = new Set();
          for (const mode of ['tree', 'icicle']) {
            document.querySelector(`[data-value=${mode}]`).click();
            for (let step = 0; step < 30; step++) {
              view.goto(step);
              for (const g of document.querySelectorAll('[data-token-text]')) seen.add(g.dataset.tokenText);
              for (const node of [0, 1, 2, -1, 'final']) view.select(node);
            }
          }
          return [...seen]; }"""
    )
    assert len(set(seen) & set(HOSTILE)) >= 30
    tags = page.evaluate("[...new Set([...document.querySelectorAll('*')].map(e => e.tagName))]")
    assert set(tags) - set(allowed) <= {"circle", "s", "S"}
    assert page.locator("iframe, img, b, i, a, [onerror], [onload], [onmouseover]").count() == 0
    assert page.locator(".ds-prompt").inner_text().startswith("<img src=x onerror=alert(1)>")
    assert page.title() == "</title><script>alert(1)</script>"


def test_a_target_behind_an_engine_tells_few_numbers(replay):
    run, steps, summary = lines(Toy(steps=2))
    few = "tells p of a few tokens only"
    assert few not in replay(text_of(run, steps, summary)).inner_text("#inspector")
    run["target"] |= {"known": 8, "clock": "remote"}
    assert few in replay(text_of(run, steps, summary)).inner_text("#inspector")


def text_of(run: dict, steps: list[dict], summary: dict) -> str:
    return "".join(json.dumps(line) + "\n" for line in (run, *steps, summary))
