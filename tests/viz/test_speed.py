"""The bar that answers whether a run is faster, from what was measured."""

import pytest

DRAW = """([speed, measuring, gain = 4.17]) => {
  const root = document.createElement('div');
  document.body.replaceChildren(root);
  const line = Draftscope.speedLine(Draftscope.makeGlossary(root));
  root.append(line.element, line.why);
  line.draw(speed && { speed }, measuring, gain);
  const shown = [...line.element.children].filter((one) => !one.hidden && one.textContent).map((one) => one.textContent);
  return [line.element.hidden, shown, line.why.textContent, line.element.querySelector('.ds-speed-fill').style.width];
}"""
GAIN = 4.17
SPEED = {
    "ratio": 1.6,
    "low": 1.5,
    "high": 1.7,
    "rounds": 5,
    "draft": 1.2,
    "verify": 3.8,
    "rows": 8.2,
    "one": 1.9,
    "gpu": {"machine": "NVIDIA L4", "ratio": 2.5},
}


def test_the_answer_its_reason_and_the_projection(script):
    hidden, shown, why, width = script.evaluate(DRAW, [SPEED, False])
    assert not hidden and width == f"{100 * 1.6 / 2.75:.1f}%"
    assert shown == [
        "Is it faster?",
        "Yes: 1.60× as fast (1.50 to 1.70, prompt included)",
        "On a GPU",
        "2.5×, projected for NVIDIA L4",
    ]
    assert why == "Why: 4.2 tokens take 1.2 ms guessing + 3.8 checking, or 7.9 ms one by one."
    _, _, why, _ = script.evaluate(DRAW, [{**SPEED, "machine": "Intel Xeon"}, False])
    assert why.endswith("ms one by one (Intel Xeon).")


@pytest.mark.parametrize(
    ("ratio", "low", "high", "answer"),
    [
        (0.4, 0.35, 0.5, "No: 0.40× the speed"),
        (1.0, 0.97, 1.04, "No: about as fast"),
        (2.8, 1.7, 8.4, "Yes: about 2.80× as fast"),
        (1.1, 0.8, 1.4, "Unclear, the machine is busy: 1.10×"),
    ],
)
def test_a_loss_and_a_doubt_are_told_as_such(script, ratio, low, high, answer):
    one = ratio * (SPEED["draft"] + SPEED["verify"]) / GAIN
    speed = {**SPEED, "ratio": ratio, "low": low, "high": high, "one": one, "gpu": None}
    _, shown, why, _ = script.evaluate(DRAW, [speed, False])
    assert len(shown) == 2 and shown[1].startswith(answer + " (")
    assert why.startswith("Why, roughly: ") == (high > 1.5 * low)
    _, _, why, _ = script.evaluate(DRAW, [{**speed, "one": 1.1 * one}, False])
    assert why.startswith("Why, roughly: "), "these costs contradict the answer"


def test_without_an_answer_there_is_none(script):
    assert script.evaluate(DRAW, [None, False])[0]
    hidden, shown, why, _ = script.evaluate(DRAW, [None, True])
    assert not hidden and shown == ["Is it faster?", "measuring…"] and not why
