"""The instruments of the lessons."""

import random
from xml.etree.ElementTree import fromstring

import pytest
from scipy.stats import chisquare

from engine.batch.together import Budget
from presets.lessons.class_quiz import class_quiz
from presets.lessons.quiz import quiz
from viz.bundle import lesson_css

TOSSES, PAIRS, DOUBT = 10_000, 50, 1e-4
TOSS = """([rule, pairs, times]) => {
  const random = Draftscope.seeded(11);
  return pairs.map(([p, q]) => Draftscope.tossMany(rule, p, q, times, random).counts);
}"""


@pytest.fixture(scope="module")
def tools(script):
    script.add_style_tag(content=lesson_css())
    return script


def laws(count: int) -> list:
    draw = random.Random(7)
    drawn = [[draw.random() ** 2 + 0.01 for _ in range(5)] for _ in range(2 * count)]
    scaled = [[share / sum(law) for share in law] for law in drawn]
    return list(zip(scaled[::2], scaled[1::2], strict=True))


def odds(tools, rule: str) -> list[float]:
    """Return, for each pair of laws, the p-value of the histogram if its tokens come from p."""
    pairs = laws(PAIRS)
    counts = tools.evaluate(TOSS, [rule, pairs, TOSSES])
    return [
        chisquare(seen, [share * TOSSES for share in p]).pvalue
        for seen, (p, _) in zip(counts, pairs, strict=True)
    ]


def test_the_rule_s_histogram_is_p_however_bad_q_is(tools):
    found = sorted(odds(tools, "exact"))
    assert found[0] > DOUBT and found[9] >= 0.05, "about one of twenty, by chance"


@pytest.mark.parametrize("rule", ["always", "compare", "plain redraw"])
def test_broken_rules_leave_p(tools, rule):
    assert max(odds(tools, rule)) < DOUBT


def test_the_page_s_own_verdict_agrees(tools):
    verdicts = """([rule, pairs]) => { const random = Draftscope.seeded(3);
      return pairs.map(([p, q]) => Draftscope.fitsLaw(Draftscope.tossMany(rule, p, q, 10000, random).counts, p)); }"""
    assert all(tools.evaluate(verdicts, ["exact", laws(PAIRS)]))
    for rule in ("always", "compare"):
        assert not any(tools.evaluate(verdicts, [rule, laws(PAIRS)]))


def test_coins_fall_into_the_areas_of_p_and_q(tools):
    """What both cover is kept, what q has alone is refused, and replacements fall into what p has alone."""
    p, q = [0.3, 0.5, 0.2], [0.7, 0.2, 0.1]
    told = tools.evaluate(
        """([p, q]) => { const random = Draftscope.seeded(5), {last} = Draftscope.tossMany('exact', p, q, 300, random);
      return [Draftscope.areasOf(p, q), last.map((toss) => Draftscope.coinsOf(toss, p, q, random(), false))]; }""",
        [p, q],
    )
    areas, tosses = told
    assert sum(one["both"][1] for one in areas) == pytest.approx(0.6), "the overlap"
    inside = {"kept": "both", "refused": "refused", "drawn": "residual"}
    kinds = [[coin["kind"] for coin in coins] for coins in tosses]
    assert len(tosses) == 300 and {tuple(one) for one in kinds} == {("kept",), ("refused", "drawn")}
    for coin in (coin for coins in tosses for coin in coins):
        low, high = areas[coin["token"]][inside[coin["kind"]]]
        assert low <= coin["height"] <= high and high > low, coin


def test_a_guess_may_be_any_number_also_the_slider_s_first_place(tools):
    told = tools.evaluate("""() => {
      const spec = {ask: [], then: [], near: 0.001, value: 5, slider: {low: 0, high: 10, step: 1}}, out = [];
      for (const typed of ['5', '5.0004', '4,5', 'x']) {
        const {element} = Draftscope.lessonQuestion(spec, {nodes: () => [], settled() {}}), field = element.querySelector('.ln-guess');
        field.value = typed;
        field.dispatchEvent(new Event('input'));
        field.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'}));
        out.push(element.dataset.right || null);
      }
      return out; }""")
    assert told == ["true", "true", "false", None]


def test_a_reading_counts_only_at_the_setting_that_is_asked_for(tools):
    told = tools.evaluate("""() => {
      const made = Draftscope.lessonLength({example: 'x', longest: 8, start: {alpha: .65, cost: .7, drafting: .5, checking: .2, drafted: 2, gain: 2, speed: 1}}, {changed() {}});
      const asked = {...made.settings(), alpha: .6}, before = Draftscope.toSet(made, 'best', asked);
      const slider = made.element.querySelector('input'); slider.value = .6; slider.dispatchEvent(new Event('input'));
      const other = made.element.querySelectorAll('input')[2]; other.value = 7; other.dispatchEvent(new Event('input'));
      return [before, Draftscope.toSet(made, 'best', asked), Draftscope.toSet(made, 'gain', asked)]; }""")
    assert told == [["set α to 0.60"], [], ["set k to 4"]], "the best length is of any k"


def test_what_was_not_measured_judges_nothing(tools):
    told = tools.evaluate("""() => {
      const made = Draftscope.lessonPasses({measured: [[1, 2], [4, 3]], bytes: 1e6, machines: []}, {changed() {}});
      return [made.readings().gain, Draftscope.rightAnswer({judge: 'instrument', slider: {}, answer: 'gain'}, made.readings())]; }""")
    assert told == [None, None]


def test_the_number_of_a_class_is_one_that_there_is(tools):
    seeds = tools.evaluate(
        """(questions) => [1e9, -5, 2.5].map((seed) => {
      let told = null; const view = Draftscope.mountQuiz(document.createElement('div'), {title: 't', lead: 'l', questions}, {seeded: (next) => { told = next; }}, seed);
      view.destroy(); return told; })""",
        quiz()["questions"][:1],
    )
    assert seeds == [9999, 1, 3]


def test_the_curve_counts_what_a_chain_gains(tools):
    """Compared with the sum over all outcomes of a chain: i tokens accepted, then one rejected, or all k accepted."""
    for alpha, k in ((0.3, 2), (0.8, 5), (0.0, 3), (1.0, 4)):
        outcomes = sum((i + 1) * alpha**i * (1 - alpha) for i in range(k)) + (k + 1) * alpha**k
        told = tools.evaluate("([a, k]) => Draftscope.expectedTokens(a, k)", [alpha, k])
        assert told == pytest.approx(outcomes)
    speeds = [tools.evaluate("k => Draftscope.speedup(0.7, 0.2, k)", k) for k in range(17)]
    assert tools.evaluate("Draftscope.bestLength(0.7, 0.2, 16)") == speeds.index(max(speeds))
    assert tools.evaluate("Draftscope.bestLength(0.1, 0.5, 16)") == 0


@pytest.mark.parametrize("rows", [64, 256, 512, 4096])
@pytest.mark.parametrize("part", [16, 128, 1024])
def test_the_rounds_are_those_of_the_engine_s_batch(tools, rows, part):
    """Roots, drafts and the prompt's rows, round by round, until the prompt is read."""
    texts, draft, prompt = 5, 6, 3000
    drafts = texts * min(draft, Budget(rows, part).deepest(texts, True))
    found = tools.evaluate(
        "(plan) => Draftscope.roundsOf(plan)",
        {"rows": rows, "part": part, "texts": texts, "draft": draft, "prompt": prompt},
    )
    assert sum(one["prefill"] for one in found) == prompt
    assert {(one["decode"], one["verify"]) for one in found} == {(texts, drafts)}
    assert all(one["prefill"] >= part for one in found[:-1])
    whole = [sum(one.values()) for one in found[:-1]]
    assert all(one == max(rows, texts + drafts + part) for one in whole)


def test_the_rounds_instrument_reads_at_its_settings(tools):
    told = tools.evaluate("""() => {
      const machine = {name: 'm', bandwidth: 1000, arithmetic: 100000, sheet: ''};
      const made = Draftscope.lessonRounds({machine}, {changed() {}}), [rows] = made.element.querySelectorAll('input');
      const waits = [6, 9, 15].map((power) => { rows.value = power; rows.dispatchEvent(new Event('input')); return made.readings().wait; });
      return [waits, Draftscope.toSet(made, 'wait', {rows: 512, part: 256}), made.element.querySelectorAll('.ln-rows').length > 3]; }""")
    (small, middle, large), unset, drawn = told
    assert small <= middle < large and unset == ["set τ to 512"] and drawn


def test_a_class_shares_the_numbers_of_its_seed(tools):
    make = "([questions, seed]) => Draftscope.quizOf(questions, seed)"
    questions = quiz()["questions"]
    first, again, other = (tools.evaluate(make, [questions, seed]) for seed in (5, 5, 6))
    assert first == again != other
    for asked, one in zip(questions, first, strict=True):
        assert "{" not in one["words"]
        if "choices" in asked:
            assert one["choices"][one["answer"]] == asked["choices"][asked["value"]]
            assert sorted(one["choices"]) == sorted(asked["choices"])
        else:
            right = [{**one, "near": asked["near"]}, one["answer"] + asked["near"]]
            assert tools.evaluate("([q, given]) => Draftscope.quizRight(q, given)", right)
            right[1] += asked["near"]
            assert not tools.evaluate("([q, given]) => Draftscope.quizRight(q, given)", right)


@pytest.mark.parametrize("number", [1, 5, 77, 9999])
def test_python_and_the_page_give_a_class_the_same_quiz(tools, number):
    make = "([questions, seed]) => Draftscope.quizOf(questions, seed)"
    shown = tools.evaluate(make, [quiz()["questions"], number])
    for one, other in zip(class_quiz(number), shown, strict=True):
        assert (one.words, one.why) == (other["words"], other["why"])
        assert one.choices == other.get("choices", [])
        assert one.answer == pytest.approx(other["answer"] + ("choices" in other))
        if not one.choices:
            assert (one.near, one.unit) == (other["near"], other["unit"])


def test_a_number_is_read_as_people_write_it(tools):
    written = ["0.33", "0,33", "1/3", "33%", " 33 % ", "160 ms", "-2", "", "x", "1/0", "1.2.3"]
    read = tools.evaluate("(all) => all.map((one) => Draftscope.quizNumber(one))", written)
    assert read[:7] == [0.33, 0.33, pytest.approx(1 / 3), 0.33, 0.33, 160, -2]
    assert read[7:] == [None] * 4
    asked = {"answer": 1 / 3, "near": 0.011}
    right = "([q, all]) => all.map((one) => Draftscope.quizRight(q, Draftscope.quizNumber(one)))"
    assert tools.evaluate(right, [asked, ["1/3", "33 %", "0.33", "1/4"]]) == [True] * 3 + [False]


def test_answers_of_a_class_are_kept(tools):
    """They come back with the class number; under another number the quiz offers the way back."""
    told = tools.evaluate(
        """(questions) => {
      let kept = {}; const host = {seeded() {}, recall: () => kept, remember: (record) => { kept = record; }}, data = {title: 't', lead: 'l', questions};
      const mount = (seed) => { const hold = document.createElement('div'); return [hold, Draftscope.mountQuiz(hold, data, host, seed)]; };
      const [first, one] = mount(7), field = first.querySelector('.ln-number-field');
      field.value = '1/3'; field.dispatchEvent(new Event('change', {bubbles: true})); one.destroy();
      const [again, two] = mount(7), found = again.querySelector('.ln-number-field').value; two.destroy();
      const [other, three] = mount(8), empty = other.querySelector('.ln-number-field').value;
      const back = [...other.querySelectorAll('button')].find((b) => b.textContent === 'Go on with class 7'); back.click();
      const last = other.querySelector('.ln-number-field').value; three.destroy();
      return [found, empty, last]; }""",
        quiz()["questions"][:2],
    )
    assert told == ["1/3", "", "1/3"]


def test_coins_differ_from_screen_to_screen_and_begin_anywhere(tools):
    first = "(words) => { const random = Draftscope.seededBy(words); return [random(), random()]; }"
    cats, suns = (tools.evaluate(first, words) for words in (["cat", "dog"], ["sun", "moon"]))
    assert cats != suns and cats == tools.evaluate(first, ["cat", "dog"])
    assert min(*cats, *suns) > 0.005


def test_an_answer_of_one_is_told_in_the_singular(tools):
    told = tools.evaluate(
        "() => [['1', 'tokens a step'], ['2', 'tokens a step'], ['1', 'times'], ['1', 'ms'], ['1', '']].map((one) => Draftscope.withUnit(...one))"
    )
    assert told == ["1 token a step", "2 tokens a step", "1 time", "1 ms", "1"]


def test_a_step_in_which_no_meter_was_read_says_so(tools):
    """Under its heading the meter would otherwise be an empty box."""
    gauge = {"kind": "gauge", "title": "G", "value": 0.5, "mark": 0.6, "meter": True}
    steps = [{"drafter": {"exhibits": shown}} for shown in ([gauge], [])]
    tools.evaluate(
        """(steps) => { globalThis.card = Draftscope.exhibitCard({}); document.body.append(card.element); card.grow({steps}); card.draw(steps[1]); }""",
        steps,
    )
    unread = tools.get_by_text("Not read in this step.")
    unread.wait_for()
    tools.evaluate("(step) => card.draw(step)", steps[0])
    unread.wait_for(state="hidden")
    tools.evaluate("card.element.remove()")


def test_the_words_of_a_mark_leave_the_lines_free(tools):
    """They stand above their place, or below it where a line runs above."""
    told = tools.evaluate("""() => [10, 4.5].map((other) => {
      const axis = {low: 0, high: 10, ticks: [], label: ''}, flat = (y) => ({name: 'l', points: [[0, y], [10, y]]});
      const chart = Draftscope.lessonChart({x: axis, y: axis, lines: [flat(3.5), flat(other)], marks: [{at: [5, 3.5], words: 'here: 3.5', kind: 'own'}], told: ''});
      const [pin] = chart.querySelectorAll('.ln-pin');
      return pin.querySelector('text').getAttribute('y') - pin.querySelector('circle').getAttribute('cy'); })""")
    above, below = told
    assert above < 0 < below


def test_a_bar_is_dragged_and_the_law_stays_one(tools):
    tools.evaluate("""() => { const hold = Draftscope.el('section', {class: 'ds ln', id: 'drag', style: 'width: 640px'}); document.body.prepend(hold);
      globalThis.dragged = Draftscope.lessonRule({words: ['a', 'b'], p: [.5, .5], q: [.9, .1], rules: ['exact']}, {changed() {}});
      hold.append(dragged.element); scrollTo(0, 0); }""")
    box = tools.locator("#drag [data-kind=q][data-at='0']").bounding_box()
    across = box["x"] + box["width"] / 2
    tools.mouse.move(across, box["y"] + 2)
    tools.mouse.down()
    tools.mouse.move(across, box["y"] + box["height"] / 2)
    tools.mouse.up()
    law = tools.evaluate("dragged.settings().q")
    assert law[0] == pytest.approx(0.45, abs=0.04) and sum(law) == pytest.approx(1)
    assert tools.evaluate("dragged.settings().p") == [0.5, 0.5]


def test_a_slide_is_a_picture_of_its_own(tools):
    """Its colours are written into it: it needs no style sheet, and dark differs from light."""
    tools.evaluate("""() => { const hold = Draftscope.el('section', {class: 'ds ln', style: 'width: 900px'}); hold.id = 'hold'; document.body.append(hold);
      hold.append(Draftscope.lessonRule({words: ['a\\u0001', 'b'], p: [.5, .5], q: [.9, .1], rules: ['exact']}, {changed() {}}).element); }""")
    make = "(theme) => Draftscope.slideOf(Draftscope.picturesIn(hold)[0], theme, 'A <title>')"
    light, dark = (tools.evaluate(make, theme) for theme in ("light", "dark"))
    assert light != dark and "class=" not in light and "var(" not in light
    assert "A &lt;title&gt;" in light and 'fill="#' in light
    assert fromstring(light).tag.endswith("svg"), "a control character would not be XML"
    size = tools.evaluate(
        "(text) => Draftscope.pngOf(text, 2).then((blob) => createImageBitmap(blob)).then(({width}) => width)",
        light,
    )
    assert size == 2 * 900


def test_the_experts_of_a_pass_are_those_of_its_rows(tools):
    """And the best length is the fastest by the times of the passes."""
    uses = [[3, 1], [1], [7, 0], [2]]
    needed = "([uses, rows]) => Draftscope.neededExperts(uses, rows)"
    for rows in range(1, 5):
        expected = sorted({one for row in uses[:rows] for one in row})
        assert tools.evaluate(needed, [uses, rows]) == expected
    wide = [1.0, 1.1, 1.3, 2.0, 3.5]
    speeds = [sum(0.8**i for i in range(k + 1)) / wide[k] for k in range(5)]
    told = "(wide) => wide.map((_, k) => Draftscope.expertSpeed(0.8, wide, k))"
    assert tools.evaluate(told, wide) == pytest.approx(speeds)
    best = tools.evaluate("(wide) => Draftscope.expertBest(0.8, wide)", wide)
    assert best == speeds.index(max(speeds))
