"""The sentence under a race: whether the lanes that must write the same text did so."""

import json

import pytest

from tests.viz.builder import Toy

COMPARE = """(texts) => Draftscope.compareTexts(texts.map((text, i) => {
  const model = Draftscope.traceModel();
  model.feed(text);
  return ['lane' + i, model];
}))"""


def greedy(seed: int = 0) -> str:
    return Toy(style="chain", rule="greedy", seed=seed).ndjson()


def sampled(rule: str) -> str:
    return Toy(style="chain", rule=rule).ndjson()


def lossy(text: str) -> str:
    run, rest = text.split("\n", 1)
    run = json.loads(run)
    run["verifier"]["lossless"] = False
    return json.dumps(run) + "\n" + rest


def test_greedy_lanes_agree_or_part_somewhere(script):
    assert script.evaluate(COMPARE, [greedy(), greedy()])["alike"] is True
    other = [json.loads(line) for line in greedy().splitlines()]
    other[3]["output"]["tokens"][0] += 1
    changed = "".join(json.dumps(line) + "\n" for line in other)
    verdict = script.evaluate(COMPARE, [greedy(), changed])
    first = sum(len(line["output"]["tokens"]) for line in other[1:3])
    assert verdict["alike"] is False and verdict["index"] == first


def test_a_lossy_lane_owes_nobody_its_text(script):
    assert script.evaluate(COMPARE, [greedy(), greedy(1)])["alike"] is False
    verdict = script.evaluate(COMPARE, [greedy(), greedy(), lossy(greedy(1))])
    assert verdict == {
        "text": "All 2 lossless lanes wrote the same text, token for token, at temperature 0. "
        "Lossy, so left out: lane2.",
        "index": None,
        "alike": True,
    }
    alone = script.evaluate(COMPARE, [greedy(), lossy(greedy(1))])
    assert alone == {"text": "Lossy, so left out: lane1.", "index": None, "alike": None}


ROUNDED = {"lossless": False, "same_text": False, "up_to_rounding": True}


def test_in_half_precision_lanes_are_compared_and_nothing_is_called_lossless(script):
    one, other = saying(greedy(), **ROUNDED), saying(greedy(1), **ROUNDED)
    alike = script.evaluate(COMPARE, [one, one, lossy(greedy(1))])
    assert alike["alike"] is True and "lossless" not in alike["text"]
    assert alike["text"].endswith("Lossy, so left out: lane2.")
    parted = script.evaluate(COMPARE, [one, other])
    assert parted["alike"] is None and isinstance(parted["index"], int)
    assert parted["text"].endswith("In half precision, rounding may part them.")
    drawn = script.evaluate(COMPARE, [saying(sampled("rejection"), **ROUNDED)] * 2)
    assert drawn["alike"] is None and "up to rounding" in drawn["text"]


def test_lanes_of_another_law_are_left_out_and_named_apart_from_lossy_ones(script):
    other = saying(greedy(1), lossless=False, law="momentum decoding")
    told = script.evaluate(COMPARE, [greedy(), greedy(), lossy(greedy(1)), other])
    assert told["alike"] is True
    assert told["text"].endswith("Lossy, so left out: lane2. Of another law, so left out: lane3.")


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ({}, "lossless"),
        (ROUNDED, "equal up to rounding"),
        ({"lossless": False}, "lossy"),
        ({"lossless": False, "law": "momentum decoding"}, "another law"),
    ],
)
def test_the_word_for_a_pair(script, said, word):
    rule = {"lossless": True, **said}
    assert script.evaluate("(rule) => Draftscope.exactnessOf(rule)", rule) == word
    assert script.evaluate("(word) => word in Draftscope.GLOSSARY", word)


def saying(text: str, **more) -> str:
    run, rest = text.split("\n", 1)
    run = json.loads(run)
    run["verifier"] |= more
    return json.dumps(run) + "\n" + rest


def test_a_rule_says_itself_whether_one_seed_means_one_text(script):
    matched, free = sampled("sampler_match"), sampled("rejection")
    bound = [saying(free, key="a_new_rule", same_text=True)] * 2
    assert script.evaluate(COMPARE, bound)["alike"] is True
    unbound = [saying(matched, key="a_new_rule", same_text=False)] * 2
    assert script.evaluate(COMPARE, unbound)["alike"] is None


def test_lanes_matched_to_one_sampler_are_compared_among_themselves(script):
    matched, free = sampled("sampler_match"), sampled("rejection")
    verdict = script.evaluate(COMPARE, [matched, free, matched])
    assert verdict["alike"] is True
    assert verdict["text"].startswith("All 2 lanes whose text the seed decides wrote the same text")
    for lanes in ([free, free], [matched, free]):
        verdict = script.evaluate(COMPARE, lanes)
        assert verdict["alike"] is None and "may differ" in verdict["text"]
