"""The drawing of a tuning: its record is read with care, its figures can be read by keys and saved, and nothing of it is
taken for HTML."""

import json

import pytest

from tests.app.bare import bare_page
from tests.axe import violations_in_both_schemes
from tests.viz.conftest import until
from tests.viz.hostile import HOSTILE
from tests.viz.tables import cases


def positions(*counts: tuple[int, int]) -> list[dict]:
    """Return (reached, accepted) by position."""
    return [{"position": i, "reached": r, "accepted": a} for i, (r, a) in enumerate(counts, 1)]


def acceptance(drafter: str = "chain", size: int = 2, kind: str = "all", **more) -> dict:
    counts = positions((100, 80), (80, 40))
    line = {"kind": "acceptance", "drafter": drafter, "size": size, "prompt_kind": kind}
    return {**line, "positions": counts, "prompts": 6, "options": {"length": size}} | more


def setting(drafter: str, size: int, texts: int, ratio: float, **more) -> dict:
    line = {"kind": "setting", "drafter": drafter, "options": {"length": size}, "size": size}
    line |= {"verifier": "greedy", "lossless": True, "texts": texts, "predicted": 100 * ratio}
    return {**line, "checked": None, "ratio": ratio, "plain": 100.0} | more


def cost(rows: int, milliseconds: float, texts: int = 1, what: str = "target") -> dict:
    line = {"kind": "cost", "what": what, "rows": rows, "texts": texts, "context": 64}
    return {**line, "milliseconds": milliseconds, "repeats": 5}


def answer(sentence: str = "`chain`, 2 tokens: 1.5 times plain decoding.", **more) -> dict:
    link = {"drafter": "chain", "options": {}, "prompt": "Once", "temperature": 0, "seed": 0}
    line = {"kind": "answer", "sentence": sentence, "drafter": "chain", "size": 2, "ratio": 1.5}
    why = {"cause": "pays", "sentence": "It pays."}
    return {**line, "off_above": 2, "why": why, "preset_link": link} | more


def text(*lines: dict) -> str:
    return "".join(json.dumps(line) + "\n" for line in lines)


RECORD = (
    {"kind": "tuning", "target": {"name": "t"}, "prompts": {"given": 9, "sampled": 6}},
    *(cost(rows, 2 + rows / 8, texts) for texts in (1, 4) for rows in (1, 2, 8)),
    acceptance(),
    acceptance("suffix", 3, kind="all"),
    acceptance("suffix", 3, kind="code"),
    *(setting("chain", size, t, 2 / t + size / 9) for size in (1, 2, 4) for t in (1, 2, 4)),
    setting("suffix", 3, 1, 0.8),
    answer(),
)

READ = "((lines) => Draftscope.recordReader()(lines.map((one) => JSON.stringify(one) + '\\n').join('')))"

TWICE = (
    "((first, then) => { const read = Draftscope.recordReader(); read(first); return read(then); })"
)
"""A reader that is given one text and then another."""
TORN = '{"kind":"cost"', '{"kind":"answer","sentence":"x"}\n{'
ONE = json.dumps(text(cost(1, 2.0)))


def unread(*lines: object) -> str:
    return f"{READ}({json.dumps(lines)}).unread"


CASES = cases(
    reading={
        "a line that is torn waits": (
            f"{TWICE}({json.dumps(TORN[0])}, {json.dumps(TORN[1])}).answer.sentence",
            "x",
        ),
        "only what is new is read": (f"{TWICE}({ONE}, {ONE} + {ONE}).cost.length", 2),
        "another text begins anew": (f"{TWICE}({ONE} + {ONE}, {ONE}).cost.length", 1),
        "what is none of a record is counted": (
            unread("x", 1, None, [], {}, {"kind": "toString"}, {"kind": ["cost"]}, {"kind": "run"}),
            8,
        ),
        "numbers must make sense": (
            unread(
                cost(0, 2.0),
                cost(1, -2.0),
                cost(1, 2.0, texts=0),
                {**cost(1, 2.0), "milliseconds": "2"},
                acceptance(positions=positions((1, 2))),
                acceptance(positions="x"),
                acceptance(positions=[None]),
                acceptance(positions=[]),
                setting("", 1, 1, 1.0),
                setting("chain", -1, 1, 1.0),
                setting("chain", 1, 1, -1.0),
                {**setting("chain", 1, 1, 1.0), "ratio": None},
                answer(""),
                answer(7),
            ),
            14,
        ),
        "another engine's record has no drafter, and perhaps no steps that reached a position": (
            f"{READ}({json.dumps([acceptance(drafter=None, source={'engine': 'vllm', 'name': 'a.json'}, positions=[{'position': 1, 'accepted': 3}])])}).acceptance.map((one) => [one.drafter, one.positions[0].reached])",
            [["vllm, a.json", None]],
        ),
        "progress is not kept": (
            'Draftscope.keptLines(\'{"kind":"progress","done":1}\\n{"kind":"cost"}\\n\')',
            '{"kind":"cost"}\n',
        ),
    },
    numbers={
        # by hand, with z = 1.96: (0.8 + 0.0384160 / 2) / 1.0384160 -+ 1.96 / 1.0384160 * sqrt(0.0016 + 0.038416 / 400)
        "Wilson's interval": (
            "Draftscope.wilson(80, 100).map((one) => one.toFixed(3))",
            ["0.711", "0.867"],
        ),
        "none of some": (
            "Draftscope.wilson(0, 10).map((one) => one.toFixed(3))",
            ["0.000", "0.278"],
        ),
        "nothing counted": ("Draftscope.wilson(0, 0)", None),
        "a later line of the same setting counts, and the better of two options": (
            f"Draftscope.sizeByDrafter({json.dumps([setting('a', 2, 1, 3.0), setting('a', 2, 1, 1.5), setting('a', 2, 1, 1.2, options={'x': 1}), setting('b', 2, 1, 2.0), setting('b', 2, 4, 9.0)])}).cells.map((row) => row.map((one) => one.ratio))",
            [[2.0, 1.5]],
        ),
        # the best is known after ten prompts: 2.0, which was 4.0 after the two that the other was tried on
        "a gain on few prompts is put beside the best one's on the same": (
            f"Draftscope.besideTheBest({json.dumps([setting('a', 2, 1, 4.0, prompts=2), setting('a', 2, 1, 2.0, prompts=10), setting('b', 2, 1, 3.0, prompts=2), setting('c', 2, 1, 3.0, prompts=4), setting('b', 2, 4, 3.0, prompts=2)])}).map((one) => one.ratio)",
            [2.0, 2.0, 1.5, 3.0, 3.0],
        ),
        "counts as they are typed": (
            "Draftscope.typedPositions('8/10\\n\\n 4 , 8 ').map((one) => [one.accepted, one.reached])",
            [[8, 10], [4, 8]],
        ),
        "more kept than reached, and words": (
            "['9 / 8', 'x', '', '1/2\\n3'].map(Draftscope.typedPositions)",
            [None] * 4,
        ),
        "a table as CSV": (
            "Draftscope.csvText({columns: ['a', 'b'], rows: [['=1+1', 2], ['x \"y\", z', -3], [null, 'k']]})",
            'a,b\r\n\'=1+1,2\r\n"x ""y"", z",-3\r\n,k\r\n',
        ),
        "a pass that costs less than one over fewer rows": (
            f"{json.dumps([[cost(1, 4.0), cost(2, 2.0)], [cost(1, 4.0), cost(2, 2.0, texts=2)], [cost(1, 2.0), cost(2, 1.9)]])}.map((one) => Draftscope.unsteady({{cost: one}}))",
            [True, False, False],
        ),
        "gains": (
            "[0.5, 1.236, 12.36, 123.6].map(Draftscope.gainText)",
            ["0.50×", "1.24×", "12.4×", "124×"],
        ),
    },
)


@pytest.mark.parametrize("case", CASES)
def test_pure_functions(given, case):
    assert given[case] == CASES[case][1]


MOUNT = """([told, state]) => {
  window.c = {element: here, props: {value: told, late: []}, trigger() {}, watch() {}};
  DraftscopePage.canvas('tune', c);
  DraftscopePage.happen('tune', {kind: 'reported', state, message: ''});
}"""
OFFER = {
    "drafters": {key: {"title": key.capitalize(), "options": []} for key in ("chain", "suffix")},
    "machines": ["A machine"],
    "engines": [["vllm", "vLLM"]],
}


@pytest.fixture
def drawn(tabs):
    """Return drawn(record, state, **options of the tab), which opens a page with the tuning, without a server."""
    opened = []

    def draw(told: str, state: str = "done", **options):
        errors: list[str] = []
        hears = {"pageerror": lambda error: errors.append(str(error))}
        page = bare_page(tabs.open(hears, **options), OFFER)
        opened.append((page, errors))
        page.set_default_timeout(20_000)
        page.evaluate(MOUNT, [told, state])
        page.locator("#here .tn-place").first.wait_for(state="attached")
        until(page, "!document.querySelector('.tn-figures').hidden")
        return page

    yield draw
    for page, errors in opened:
        tabs.close(page)
        assert errors == []


def test_the_answer_comes_first_then_figures_that_keys_read(drawn):
    page = drawn(text(*RECORD))
    page.locator("[data-figure=costs]").wait_for()
    first = page.locator(".tn").inner_text().splitlines()[0]
    assert first == "chain, 2 tokens: 1.5 times plain decoding."
    assert page.locator(".tn-answer").inner_text().count("6 of 9 prompts") == 1
    keys = [one.get_attribute("data-figure") for one in page.locator("[data-figure]").all()]
    assert keys == ["drafters", "texts-chain", "acceptance-all", "costs"]
    box = page.locator("[data-figure=texts-chain] .tn-box")
    box.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight"):
        box.press(key)  # 2 tokens, 4 texts: 2 / 4 + 2 / 9
    said = page.locator("[data-figure=texts-chain] [aria-live]").inner_text()
    assert said == "Chain, 2 tokens, 4 texts at once: 0.72× plain decoding (predicted)."
    href = page.locator("[data-figure=texts-chain] .tn-beside a").get_attribute("href")
    assert "drafter=chain" in href and "o.length=2" in href and "prompt=Once" in href
    assert page.locator("[data-figure=texts-chain] .tn-edge").get_attribute("d"), "a line"
    page.get_by_label("Prompts").select_option("code")
    page.locator("[data-figure=acceptance-code]").wait_for()
    assert page.locator("[data-figure=acceptance-code] .ln-key").inner_text() == "Suffix, 3"
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save “What does a pass cost?” as CSV").click()
    assert saved.value.path().read_text("utf-8").splitlines()[1] == "target,1,1,64,2.125"
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save “What does a pass cost?” as SVG").click()
    assert saved.value.path().read_text("utf-8").count("<path") > 4
    assert violations_in_both_schemes(page) == []


def test_a_record_that_grows_keeps_the_focus_and_says_how_long_it_takes(drawn):
    page = drawn(text(*RECORD), "running")
    assert page.locator("#tune-answer").inner_text().startswith("So far: chain, 2 tokens")
    box = page.locator("[data-figure=drafters] .tn-box")
    box.focus()
    more = [{"kind": "progress", "done": 0.5, "seconds_left": 12.2, "doing": "Writing with Chain"}]
    grown = text(*RECORD[:-1], setting("suffix", 4, 1, 0.9), *more)
    page.evaluate("told => DraftscopePage.feed('tune', told)", grown)
    page.locator("[data-figure=drafters] .tn-heat g").nth(7).wait_for()
    assert page.locator(".tn-progress").inner_text() == (
        "50 %; about 12 seconds left. Writing with Chain"
    )
    assert page.evaluate("document.activeElement.closest('figure').dataset.figure") == "drafters"


def test_a_run_that_differs_from_its_prediction_is_told_with_the_answer(drawn):
    run = {"verifier": "greedy", "checked": 210.4, "predicted": 330.2}
    page = drawn(text(*RECORD[:-1], setting("chain", 2, 1, 1.5, **run), answer(verifier="greedy")))
    assert page.locator(".tn-answer .tn-busy").inner_text() == (
        "Running it gave 210 tokens a second where 330 were predicted: the predictions in the tables may "
        "be as far off. Measure again while nothing else computes."
    )
    said = page.locator("#tune-answer").inner_text()
    assert said.startswith("Unclear, the machine was busy. Perhaps: ")
    assert page.locator(".tn-answer").get_attribute("data-pays") == "false"
    near = setting("chain", 2, 1, 1.5, **run | {"predicted": 240})
    page.evaluate(
        "told => DraftscopePage.feed('tune', told)",
        text(*RECORD[:-1], near, answer(verifier="greedy")),
    )
    page.locator(".tn-answer .tn-busy").wait_for(state="detached")
    assert page.locator(".tn-answer strong").inner_text().strip() == "Pays."
    assert page.locator(".tn-answer").get_attribute("data-pays") == "true"


def test_settings_after_fewer_prompts_are_listed_last_with_their_number(drawn):
    few = [setting("suffix", size, 1, size, prompts=6) for size in range(3, 23)]
    page = drawn(text(setting("chain", 2, 1, 1.5, prompts=24), *few, answer()))
    page.locator(".tn-settings summary").click()
    rows = [one.inner_text().split("\t") for one in page.locator(".tn-settings tbody tr").all()]
    prompts = [row[6] for row in rows]
    assert [row[1] for row in rows] == ["2", *(str(size) for size in range(22, 2, -1))]
    assert prompts == ["24", *["6"] * 20]
    page.locator("[data-figure=drafters]").wait_for()
    shades = page.locator(".tn-cell").evaluate_all("all => all.map((one) => one.dataset.shade)")
    assert [shade for shade in shades if shade != "none"] == ["2", *["rough"] * 20]
    summary = page.locator("[data-figure=drafters] .tn-box").get_attribute("aria-label")
    assert "The largest: Chain, 2 tokens, one text: 1.50×" in summary


def test_what_differs_from_the_answer_stands_above_the_command(drawn):
    page = drawn(text(*RECORD))
    told = {"text": "{}", "synthetic": "", "notes": ["Start it."], "differs": "It has `5`."}
    told["measured"] = "Measured with `t`."
    page.evaluate(
        """told => DraftscopePage.tuneTools({element: document.createElement('div'), props: {limit: 9}, trigger() {},
        server: {tune_export: async () => told}})""",
        told,
    )
    page.get_by_role("button", name="vLLM", exact=True).click()
    page.locator(".tn-export pre").wait_for()
    above = page.locator(".tn-export .tn-busy + pre")
    assert above.count() == 1
    assert page.locator(".tn-export .tn-busy").inner_text() == "It has 5."
    assert page.locator(".tn-export p:has(+ .tn-busy)").inner_text() == "Measured with t."


WISH = {"source": "ours", "kinds": ["story", "code"], "text": "", "name": "", "all": False}
OTHER = "Measured with other settings than those above."


def test_a_record_of_other_settings_says_so(drawn):
    page = drawn("")

    def controls(came: bool = False, tokens: int = 48, **changes):
        values = [json.dumps(WISH | changes), 0, 0, 1, 0, tokens, ""]
        page.evaluate(f"v => DraftscopePage.controls('tune', v, {json.dumps(came)})", values)

    def happen(state: str):
        report = {"kind": "reported", "state": state, "message": ""}
        page.evaluate("report => DraftscopePage.happen('tune', report)", report)

    said = page.get_by_text(OTHER, exact=True)
    controls(came=True)
    page.evaluate("DraftscopePage.pressed('tune'); DraftscopePage.beginRun('tune')")
    controls(kinds=["code"])  # an edit just before the click
    happen("running")
    page.evaluate("told => DraftscopePage.feed('tune', told)", text(*RECORD))
    happen("done")
    assert not said.is_visible()
    controls()
    assert said.is_visible()
    controls(kinds=["code"], text="Not measured, since the prompts are ours.")
    assert not said.is_visible()
    controls(kinds=["code"], tokens=8)
    assert said.is_visible()
    page.evaluate("DraftscopePage.happen('tune', {kind: 'cleared'})")
    page.evaluate("told => DraftscopePage.feed('tune', told)", text(*RECORD[1:]))
    assert not said.is_visible(), "nobody knows what made a record that was opened"


def test_a_flood_of_settings_is_drawn_in_part(drawn):
    flood = [setting(f"d{n}", n, 1 + n % 50, 1.0) for n in range(19_000)]
    flood += [setting("many", n, 1 + n % 50, 2.0) for n in range(900)]
    page = drawn(text(*flood))
    page.locator("[data-figure=texts-d1]").wait_for()
    assert page.locator(".tn-cell").count() <= 2 * 24 * 12
    assert page.locator(".tn-figures tbody tr").count() <= 2 * 500


def test_strangers_words_stay_words(drawn):
    lines = [
        line
        for words in HOSTILE
        for line in (
            acceptance(words, kind=words, source={"engine": words, "name": words, "lacks": words}),
            setting(words, 1, 1, 1.0, verifier=words, options={words: words}),
            setting(words, 1, 2, 1.0),
            cost(1, 1.0, what=words),
            cost(2, 1.0, what=words),
        )
    ]
    head = {"kind": "tuning", "target": {"name": HOSTILE[0]}, "machine": {"processor": HOSTILE[1]}}
    page = drawn(text(head, *lines))
    for words in HOSTILE[:12]:
        why = {"cause": words, "sentence": words}
        link = {"drafter": words, "prompt": words, "options": {words: words}}
        told = text(head, *lines, answer(words, why=why, preset_link=link))
        page.evaluate("told => DraftscopePage.feed('tune', told)", told)
        until(page, f"here.querySelector('.tn-sentence')?.textContent === {json.dumps(words)}")
        made = "here.querySelectorAll('img, script, iframe, b, i, [onload]').length"
        assert page.evaluate(made) == 0, words
        hrefs = page.evaluate(
            "[...here.querySelectorAll('a')].map((one) => one.getAttribute('href'))"
        )
        assert all(href.startswith("?") for href in hrefs)
