"""The sentences on what a run proves, in its own numbers, claim no more than was checked."""

import json

import pytest

from engine.trace import read_trace
from tests.viz.builder import Toy

SAY = """([text, checked, options]) => {
  const model = Draftscope.traceModel();
  model.feed(text);
  const { main, more, tick } = Draftscope.proofOf(model, checked, options);
  return [main, more, tick];
}"""
SAME = {"alike": True, "comparable": True, "tokens": 30, "index": None}


def told(script, toy: Toy, checked=None, lossy: bool = False, **options):
    run, *rest = toy.ndjson().splitlines()
    run = json.loads(run)
    run["verifier"]["lossless"] = not lossy
    text = "\n".join([json.dumps(run), *rest]) + "\n"
    summary = json.loads(rest[-1])
    return summary, *script.evaluate(SAY, [text, checked, options])


def test_a_checked_run_has_its_tick_and_its_numbers(script):
    toy = Toy(style="chain", rule="greedy", steps=9)
    summary, main, more, tick = told(script, toy, SAME)
    tokens, passes = summary["new_tokens"], summary["target_calls"]
    instead = f" instead of {tokens}" if tokens > passes else ""
    assert main == f"{tokens} tokens in {passes} passes of the target{instead}, and the same text."
    assert tick is True and more == "Checked against plain decoding."


def test_in_half_precision_the_text_is_equal_up_to_rounding(script):
    run, *rest = Toy(style="chain", rule="greedy", steps=4).ndjson().splitlines()
    run = json.loads(run)
    run["verifier"] |= {"lossless": False, "same_text": False, "up_to_rounding": True}
    text = "\n".join([json.dumps(run), *rest]) + "\n"
    _, more, _ = script.evaluate(SAY, [text, None, {}])
    assert more.startswith("Equal up to rounding")
    parted = {"alike": False, "comparable": True, "tokens": 4, "index": 2}
    _, more, _ = script.evaluate(SAY, [text, parted, {}])
    assert "rounding may decide" in more and "lossy" not in more


def test_only_what_was_compared_is_called_the_same(script):
    toy = Toy(style="chain", rule="greedy", steps=9)
    _, main, more, tick = told(script, toy, {**SAME, "tokens": 5})
    assert tick is True and main.endswith("and the same text as far as it was checked.")
    assert more == "Checked against the first 5 tokens of plain decoding."


def test_a_sampled_run_that_was_checked_names_the_seed(script):
    toy = Toy(style="tree", steps=4)
    tokens = read_trace(toy.ndjson()).summary["new_tokens"]
    _, main, more, tick = told(script, toy, {**SAME, "tokens": tokens})
    assert tick is True and main.endswith("and the same text.")
    assert more == "Checked against plain decoding, same seed."


@pytest.mark.parametrize(
    ("toy", "lossy", "word"),
    [
        (Toy(style="chain", rule="greedy", steps=4), False, "never the text"),
        (Toy(style="tree", steps=4), False, "distribution of texts"),
        (Toy(style="chain", rule="greedy", steps=4), True, "Lossy"),
    ],
)
def test_without_a_check_there_is_no_tick_but_the_meaning_of_the_word(script, toy, lossy, word):
    _, main, more, tick = told(script, toy, None, lossy)
    assert tick is None and "same text" not in main
    assert word in more


@pytest.mark.parametrize("lossy", [False, True])
def test_a_sampled_run_says_that_its_texts_are_distributed_alike(script, lossy):
    _, main, _, tick = told(script, Toy(style="chain", steps=9), lossy=lossy)
    assert main.endswith("same distribution.") is not lossy and tick is None


def test_what_cannot_be_compared_or_differs_has_no_tick(script):
    sampled = {**SAME, "comparable": False, "alike": False}
    _, main, more, tick = told(script, Toy(style="tree", steps=4), sampled)
    assert tick is None and "same text" not in main and "distribution of texts" in more
    other = {**SAME, "alike": False, "index": 4}
    _, main, more, tick = told(script, Toy(style="chain", rule="greedy", steps=4), other)
    assert tick is False and "another text" in main and "from token 5 on" in more


def test_while_it_plays_only_what_was_shown_counts(script):
    toy = Toy(style="tree", rule="greedy", steps=9)
    steps = [json.loads(line) for line in toy.ndjson().splitlines()][1:-1]
    _, main, more, tick = told(script, toy, SAME, playing=True, shown=1)
    tokens = sum(len(step["output"]["tokens"]) for step in steps[:2])
    assert (
        main == f"After step 2: {tokens} tokens in 2 passes of the target instead of {tokens}."
    ), "no result before its time"
    assert (more, tick) == ("", None)


def test_no_comparison_before_it_says_something(script):
    toy = Toy(style="none", rule="greedy", key="chain", steps=5)
    _, main, _, _ = told(script, toy, None, playing=True, shown=0)
    assert main == "After step 1: 1 token in 1 pass of the target."


def test_plain_decoding_is_the_measure(script):
    summary, main, _, tick = told(script, Toy(style="none", rule="greedy", key="none", steps=5))
    passes = summary["target_calls"]
    assert main.startswith(f"5 tokens in {passes} passes of the target: plain decoding")
    assert tick is None


TITLES = """(runs) => [...Draftscope.laneTitles(runs.map((run, i) => [`lane-${i}`, { run }])).values()]"""


def lane(key: str, verifier: str = "greedy", **options) -> dict:
    drafter = {"key": key, "title": key.title(), "family": "tree", "options": options}
    return {"drafter": drafter, "verifier": {"key": verifier, "title": verifier.title()}}


def test_lanes_of_one_drafter_are_named_by_what_differs(script):
    from viz.race import titles

    runs = [lane("none"), lane("tree", budget=4, depth=9), lane("tree", budget=64, depth=9)]
    named = ["None", "Tree, nodes 4", "Tree, nodes 64"]
    assert script.evaluate(TITLES, runs) == named
    assert list(titles({f"lane-{i}": run for i, run in enumerate(runs)}).values()) == named
    for run in runs:
        run["drafter"]["labels"] = {"budget": "guesses"}
    named = ["None", "Tree, guesses 4", "Tree, guesses 64"]
    assert script.evaluate(TITLES, runs) == named
    assert list(titles({f"lane-{i}": run for i, run in enumerate(runs)}).values()) == named
    drafts = [lane("chain", length=4), lane("chain", length=4)]
    for run, name in zip(drafts, ("draft", "draft-3m"), strict=True):
        run["drafter"]["parts"] = {"draft": name}
    named = ["Chain, draft", "Chain, draft-3m"]
    assert script.evaluate(TITLES, drafts) == named
    assert list(titles({f"lane-{i}": run for i, run in enumerate(drafts)}).values()) == named
    shown = "(runs) => runs.map((run) => Draftscope.settingsOf(run.drafter))"
    length = ["length", "4"]
    assert script.evaluate(shown, drafts) == [[length], [length, ["draft", "draft-3m"]]]
    ruled = [lane("tree"), lane("tree", "bild")]
    assert script.evaluate(TITLES, ruled) == ["Tree, rule Greedy", "Tree, rule Bild"]


LAW = "(run) => [Draftscope.constrainedLaw(run), Draftscope.exactnessOf(run.verifier)]"


@pytest.mark.parametrize(
    ("law", "told"),
    [(None, "masked decoding"), ("masked decoding, weighed", "masked decoding, weighed")],
)
def test_a_constrained_run_says_of_which_law_it_is_lossless(script, law, told):
    """Traces that do not name the law were all made by masked decoding."""
    run, *rest = Toy(style="chain", rule="greedy", steps=4).ndjson().splitlines()
    run = json.loads(run)
    run["constraint"] = {"key": "json_schema", "text": "{}"} | ({"law": law} if law else {})
    text = "\n".join([json.dumps(run), *rest]) + "\n"
    _, more, _ = script.evaluate(SAY, [text, None, {}])
    assert more.startswith(f"Lossless: the draft changes the speed, not the law of {told}.")
    assert "given that the text is valid" in more
    _, more, _ = script.evaluate(SAY, [text, SAME, {}])
    assert more == "Checked against plain decoding, masked as well."
    assert script.evaluate(LAW, run) == [told, "lossless"]
    run["verifier"]["lossless"] = False
    assert script.evaluate(LAW, run) == ["", "lossy"], "a lossy rule keeps no law"


@pytest.mark.parametrize(
    "text, told", [(" ti", "“␣ti” was taken back"), ("", "nothing was taken back")]
)
def test_a_healed_run_says_what_was_taken_back(script, text, told):
    run, *rest = Toy(style="chain", rule="greedy", steps=4).ndjson().splitlines()
    run = json.loads(run)
    run["constraint"] = {"key": "heal", "text": text, "law": "the target’s own texts that begin so"}
    trace = "\n".join([json.dumps(run), *rest]) + "\n"
    for checked, begin in (
        (None, "Lossless. "),
        (SAME, "Checked against plain decoding, healed as well. "),
    ):
        _, more, _ = script.evaluate(SAY, [trace, checked, {}])
        assert more.startswith(begin) and told in more
        assert "given that the text is valid" not in more


def test_the_first_token_that_plain_decoding_wrote_otherwise_is_outlined(script):
    outlined = """([text, found]) => {
      const place = document.body.appendChild(document.createElement("div"));
      const view = Draftscope.mountWatch(place, {});
      view.feed(text);
      view.goto(Infinity);
      return found.map((one) => {
        view.prove(one);
        return [...place.querySelectorAll("[data-differs]")].map((token) => Number(token.dataset.index));
      });
    }"""
    toy = Toy(style="chain", rule="greedy", steps=9)
    other = SAME | {"alike": False, "index": 4}
    cases = [SAME, other, other | {"comparable": False}, other | {"index": 2}, None]
    assert script.evaluate(outlined, [toy.ndjson(), cases]) == [[], [4], [], [2], []]
