"""Lessons: their claims are true of the finished runs, and a mistake in a lesson is told in one sentence."""

import pytest

from engine.errors import UserError
from presets import cards, trace_names
from presets.conditions import figure, finished
from presets.lessons import claims, entries, lesson, questions, shelf
from presets.lessons.claims import directives_of, untrue_claims
from presets.lessons.directives import read
from presets.lessons.field import timeline
from presets.lessons.formulas import formula, symbols_in
from presets.lessons.moments import MOMENTS, moment
from presets.lessons.numbers import number
from presets.lessons.passes import prices
from presets.lessons.quiz import quiz
from presets.lessons.reading import known_symbols, read_lesson
from presets.lessons.text import nodes

HEAD = """+++
title = "Toy"
question = "What?"
minutes = 5
methods = ["chain"]
goals = ["see"]
+++

## One

"""
QUESTION = """```predict
ask = "How many?"
slider = { low = 0, high = 200, step = 1 }
example = "story-chain"
answer = "steps"
near = 1
then = "So many."
```

"""
END = "## Teacher's notes\n\nAsk.\n"


def written(folder, body: str):
    path = folder / "01-toy.md"
    path.write_text(HEAD + body + END, "utf-8")
    return path


def directives(kind: str):
    for entry in entries():
        for screen in lesson(entry.name)["screens"]:
            for node in screen["text"]:
                if isinstance(node, dict) and node.get("directive", {}).get("kind") == kind:
                    yield entry.name, node["directive"]


def test_every_claim_is_true_of_its_finished_run():
    assert list(untrue_claims()) == [], "python -m presets check"


def test_every_lesson_claims_something_that_a_run_could_deny():
    claimed = {name for name, _ in directives("claim")}
    decided = {name for name, one in directives("predict") if "value" in one}
    assert claimed | decided == {entry["name"] for entry in shelf()}
    assert sum(len(one["holds"]) for _, one in directives("claim")) >= len(shelf())


def grown(node: object) -> list[dict]:
    """Return the brackets in these nodes that have to grow with their contents."""
    if isinstance(node, list):
        return [one for part in node for one in grown(part)]
    if not isinstance(node, dict):
        return []
    own = node.get("math") == "mo" and node.get("a", {}).get("stretchy") == "true"
    return [node] * own + grown(list(node.values()))


def test_no_bracket_of_a_formula_has_to_grow():
    """Without a font for mathematics a browser draws every bracket at one height."""
    assert len(grown(formula(r"\left( \frac{p}{q} \right)", display=True))) == 2, (
        "they would be seen"
    )
    for entry in entries():
        assert not grown(lesson(entry.name)["screens"]), entry.path.name


def test_the_quiz_asks_about_every_lesson():
    assert len(quiz()["questions"]) == 12
    assert {one["lesson"] for one in quiz()["questions"]} == {one["name"] for one in shelf()}


def test_a_claim_that_is_not_true_is_told(tmp_path):
    claim = '```claim\ntext = "It drafts nothing."\nexample = "story-chain"\nholds = ["drafted_a_step == 0"]\n```\n\n'
    screen = read_lesson(written(tmp_path, 3 * QUESTION + claim))["screens"][0]
    (found,) = directives_of(screen, "claim")
    assert not found["holds"][0]["true"] and float(found["holds"][0]["is"]) > 0


CHOICE = """```predict
ask = "?"
choices = ["a", "b"]
example = "story-chain"
right = ["steps > 1", "steps < 1"]
then = "x"
```

"""
RULE = "```rule\nwords = ['a', 'b']\np = [0.5, 0.5]\nq = [0.4, 0.6]\nrules = ['exact']\n```\n\n"
TOSSED = QUESTION.replace(
    'example = "story-chain"\nanswer = "steps"',
    'judge = "instrument"\nanswer = "share"\nwith = { rule = "always" }',
)


def test_of_choices_the_first_true_one_counts_as_in_the_browser(tmp_path):
    overlapping = CHOICE.replace("steps < 1", "steps > 2")
    text = read_lesson(written(tmp_path, 2 * QUESTION + overlapping))["screens"][0]["text"]
    assert [node["directive"]["value"] for node in text][-1] == 0


def test_lanes_that_are_nearly_alike_are_told(monkeypatch, tmp_path):
    """The winner of two such lanes may change with every recording."""
    (screen,) = read_lesson(written(tmp_path, 3 * QUESTION))["screens"]
    asked = {"lanes": ["a", "b"], "choices": ["A", "B"], "least": "x", "example": "e"}
    for values, close in (((1.70, 1.68), True), ((1.70, 2.4), False)):
        said = dict(zip(("a.x", "b.x"), values, strict=True))
        monkeypatch.setattr(questions, "figure", lambda name, _, said=said: said[name])
        told = questions.question("Here", {**asked, "ask": "?", "then": "."})
        assert told["close"] == close and told["value"] == values.index(min(values))
    screen["text"].append({"directive": {"kind": "predict", "close": True, **asked}})
    monkeypatch.setattr(claims, "lesson", lambda name: {"screens": [screen], "left_out": []})
    assert "too close" in next(claims.untrue_claims())


def test_the_price_of_a_drafted_token_is_what_a_step_takes_beyond_a_plain_pass():
    """1 + ck, in passes over one row, then equals the time for drafting and checking."""
    lanes = finished("race-story")
    plain, chain = (lanes[lane].summary for lane in ("none", "chain"))
    told = prices(lanes["chain"], lanes["none"])
    spent = (chain["milliseconds"]["draft"] + chain["milliseconds"]["verify"]) / chain["steps"]
    one = plain["milliseconds"]["verify"] / plain["steps"]
    assert 1 + told["cost"] * told["drafted"] == pytest.approx(spent / one)


BAD = {
    "asks 2 questions": 2 * QUESTION,
    "no figure": QUESTION * 3 + "`=nothing of story-chain`\n\n",
    "not written as": QUESTION * 3 + "`=steps`\n\n",
    "directive": QUESTION * 3 + "```film\nname = 'x'\n```\n\n",
    "unknown field": QUESTION * 3 + "```trace\nexample = 'story-chain'\nloop = 1\n```\n\n",
    "no moment": QUESTION * 3 + "```trace\nexample = 'story-chain'\nstep = 'sunset'\n```\n\n",
    "No step of this run": QUESTION * 3 + "```trace\nexample = 'none'\nstep = 'thrown'\n```\n\n",
    "one instrument": QUESTION * 3 + 2 * "```trace\nexample = 'story-chain'\n```\n\n",
    "symbols.toml": QUESTION * 3 + "$\\zeta$\n\n",
    "formula": QUESTION * 3 + "$x_p_q$\n\n",
    "A link must": QUESTION * 3 + "[x](http://example.org)\n\n",
    "sum to 1": QUESTION * 3
    + "```rule\nwords = ['a', 'b']\np = [0.5, 0.4]\nq = [0.5, 0.5]\nrules = ['exact']\n```\n\n",
    "by an instrument that is not": QUESTION * 3
    + QUESTION.replace(
        'example = "story-chain"\nanswer = "steps"', 'judge = "instrument"\nanswer = "share"'
    ),
    "not on the slider": QUESTION * 2 + QUESTION.replace("high = 200", "high = 3"),
    "none of its choices is right": QUESTION * 3 + CHOICE.replace("steps > 1", "steps < 1"),
    "unknown setting": QUESTION * 3 + RULE + TOSSED.replace("rule =", "temperature ="),
    "unknown rule": QUESTION * 3 + RULE + TOSSED,
    "needs plain": QUESTION * 3 + "```length\nexample = 'story-chain'\n```\n\n",
    "different targets": QUESTION * 3 + "```length\nexample = 'picture'\nplain = 'none'\n```\n\n",
}


@pytest.mark.parametrize("words", BAD)
def test_a_mistake_is_told_with_its_file(tmp_path, words):
    with pytest.raises(UserError, match=words) as told:
        read_lesson(written(tmp_path, BAD[words]))
    assert "01-toy.md" in str(told.value) and "\n" not in str(told.value)


GONE = {
    "a run": "```trace\nexample = 'gone'\n```\n\n",
    "a race": "```race\nexample = 'gone'\n```\n\n",
    "a figure": "```figure\nmethod = 'gone'\n```\n\n",
    "a number": "It took `=steps of gone` steps.\n\n",
    "a price": "It costs `=price.percent_alike of gone`.\n\n",
    "a question": QUESTION.replace("story-chain", "gone"),
}


@pytest.mark.parametrize("shown", GONE.values(), ids=GONE)
def test_a_screen_of_a_method_that_is_gone_is_left_out_and_told(tmp_path, monkeypatch, shown):
    path = written(tmp_path, 3 * QUESTION + "## Two\n\n" + shown + "## Three\n\nMore.\n\n")
    left = read_lesson(path)
    assert [screen["id"] for screen in left["screens"]] == ["one", "three"]
    assert left["examples"] == left["races"] == []
    (told,) = left["left_out"]
    assert "01-toy.md" in told and "“Two”" in told and "gone" in told
    monkeypatch.setattr(claims, "lesson", lambda name: left)
    assert told in untrue_claims()


def test_a_card_that_is_gone_is_left_out_and_told(tmp_path):
    path = written(tmp_path, 3 * QUESTION)
    path.write_text(path.read_text("utf-8").replace('["chain"]', '["chain", "gone"]'), "utf-8")
    left = read_lesson(path)
    assert [card["key"] for card in left["reading"]] == ["chain"]
    assert "gone" in left["left_out"][0]


def test_html_is_text():
    (paragraph,) = nodes("a <b onclick=x()>b</b> <script>c</script>")
    assert paragraph == {"t": "p", "c": ["a <b onclick=x()>b</b> <script>c</script>"]}
    assert nodes("[x](javascript:alert)") == [{"t": "p", "c": ["[x](javascript:alert)"]}]


def test_formulas_keep_their_letters():
    made = formula(r"\frac{1 - \alpha^{k+1}}{1 - \alpha}", display=True)
    assert symbols_in(made) == {"α", "k"} <= known_symbols().keys()


def test_every_moment_comes_in_some_finished_run():
    runs = (
        "story-sampled",
        "shuffle-block",
        "template-diffusion",
        "story-tree",
        "story-chain",
        "bad-draft",
        "story-hot",
        "multi_chain",
        "swift",
    )
    for name, those in MOMENTS.items():
        traces = [finished(run)[""] for run in runs]
        (trace, *_) = [one for one in traces if any(those(step) for step in one.steps)]
        step, node = moment(name, trace)
        assert those(trace.steps[step]) and (node is None or node in those(trace.steps[step]))


def test_a_step_far_below_the_bound_is_that_of_the_figure():
    trace = finished("rsd_s")[""]
    step, _ = moment("far below the bound", trace)
    (gauge,) = [
        one
        for one in trace.steps[step]["drafter"]["exhibits"]
        if one["kind"] == "gauge" and one["mark"] is not None
    ]
    assert gauge["mark"] - gauge["value"] == pytest.approx(figure("meter_gap", "rsd_s"))


def test_a_first_guess_is_held_against_p_and_q_as_they_are():
    """No sibling was judged before it, so no residual stands in the place of p."""
    trace = finished("story-sampled")[""]
    step, node = moment("first guess refused", trace)
    (entry,) = [one for one in trace.steps[step]["judgements"] if one["node"] == node]
    assert entry["coin"] >= entry["accept"]
    assert entry["accept"] == pytest.approx(entry["p"] / entry["q"], rel=1e-3)


def test_prices_are_numbers_of_a_text_too():
    lanes = finished("race-story")
    assert number("chain.cost of race-story 4")["number"] == (
        f"{prices(lanes['chain'], lanes['none'])['cost']:.4f}"
    )
    card = cards()["bild"]
    assert number("price.exact of bild %")["number"] == f"{100 * card.price['exact']:.0f} %"
    for wrong in ("chain.cost of story-chain", "price.exact of chain", "price.beauty of bild"):
        with pytest.raises(UserError):
            number(wrong)


def test_every_lesson_names_the_one_after_it():
    names = [entry.name for entry in entries()]
    assert [lesson(name)["next"] for name in names] == [*names[1:], "quiz"]


def test_lessons_name_cards_and_runs_that_there_are():
    for entry in shelf():
        told = lesson(entry["name"])
        assert {card["key"] for card in told["reading"]} <= cards().keys() and told["reading"]
        assert set(told["examples"]) <= set(trace_names())


def test_the_years_begin_with_blockwise_decoding_and_hold_every_card():
    years = timeline()
    assert years[0]["year"] == 2018 and "lockwise" in years[0]["title"]
    assert {one["key"] for one in years if one["key"]} == {
        c.key for c in cards().values() if c.paper
    }


def test_a_live_run_offers_the_whole_numbers_of_its_drafter():
    content = 'example = "smartspec"\ncontrols = ["load", "seed"]\noptions = { load = 9 }'
    told = read("live", content)
    assert told["options"] == {"load": 9} and told["start"] == {"seed": 0}
    assert told["sliders"]["load"] == {"label": "Texts in a pass", "low": 1, "high": 16, "step": 1}
    with pytest.raises(UserError, match="row_cost"):
        read("live", content.replace('"seed"', '"row_cost"'))
