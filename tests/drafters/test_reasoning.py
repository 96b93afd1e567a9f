"""Step-level cooperation of the embedded target and draft: which model writes which text, and why."""

import math
from functools import cache

import pytest
import torch

from engine.errors import UserError
from engine.methods.shared.reasoning import CUES, Steps, cue_in
from engine.methods.specreason.drafter import GRADES, QUESTION
from engine.methods.speculative_thinking import drafter as speculative_thinking
from engine.parts.loading import Models, load_models
from engine.rules import verifier
from presets import family
from tests.drafters.writing import built, steps_of, text_of
from tests.engine.tiny import tiny_model

SUM = "Add step by step: 9876 + 5487\n"
COUNT = 56


@cache
def models() -> Models:
    return load_models(family(), {"draft": "draft"})


@cache
def prompt() -> tuple[int, ...]:
    return tuple(models().target.tokenizer(SUM)["input_ids"])


def run(key, rule, pair=None, sampling=None, **options):
    pair = pair or models()
    options = {"length": 40} | options if key == "specreason" else options
    return steps_of(pair, key, prompt(), COUNT, sampling, rule, **options)


@cache
def alone(role) -> list[int]:
    pair = models() if role == "large" else Models(models().part("draft"))
    return text_of(run("none", verifier("greedy"), pair))


def graded(threshold):
    return verifier("specreason", {"threshold": threshold})


def laws(text):
    """Return the large model's plain law [len(text), V] after each token of a text, read anew."""
    logits, _ = models().target.session(len(text)).feed(text, range(-1, len(text) - 1))
    return logits.softmax(-1)


def test_with_every_step_kept_the_text_is_the_small_models():
    """But for the last token, where a draft and the token after it have no room."""
    written = text_of(run("specreason", graded(0.0)))
    assert written[:-1] == alone("small")[:-1] and len(written) == COUNT


def test_with_no_step_kept_it_is_the_large_models():
    steps = run("specreason", graded(9.0))
    assert text_of(steps) == alone("large")
    refused = [step for step in steps if len(step.tree)]
    assert refused and all(step.final == "recovered" for step in refused)


def test_grades_decide_about_whole_steps_and_the_large_model_ends_those_it_begins():
    """Each grade is worked out from a plain reading of the text."""
    target = models().target
    threshold, ended = 8.5, Steps(target.tokenizer, "sentence", target.end_tokens).ended
    text, steps = list(prompt()), run("specreason", graded(threshold))
    outcomes, own = set(), None
    for step in steps:
        tokens = step.tree.tokens
        assert bool(tokens) == (own is None) or step.stop, "nothing is drafted while it writes"
        if tokens:
            ends = [place for place in range(1, len(tokens) + 1) if ended(tokens[:place])]
            cut = step.position + len(tokens) + 1 == len(prompt()) + COUNT
            assert ends == [len(tokens)] or (cut and not ends), "one step and no more"
            law = laws([*text, *tokens])[len(text) - 1 :]
            logs = [math.log(law[place, token]) for place, token in enumerate(tokens)]
            grade = 9 * math.exp(sum(logs) / len(logs))
            kept = grade >= threshold
            assert step.output == (tokens if kept else [int(law[0].argmax())])
            outcomes.add(kept)
            own = None if kept else []
        else:
            assert step.output == [int(laws(text)[-1].argmax())]
        text += step.output
        if own is not None:
            own += step.output
            own = None if ended(own) else own
    assert outcomes == {True, False}, "this sum shows both"


def test_the_large_model_can_be_asked_for_a_grade():
    """The answer is the same when text, step and question are read as one plain text."""
    (step, *_) = run("specreason", graded(4.0), score="question")
    tokenizer = models().target.tokenizer
    asked = [
        *prompt(),
        *step.tree.tokens,
        *tokenizer(QUESTION, add_special_tokens=False)["input_ids"],
    ]
    digits = torch.tensor([tokenizer.convert_tokens_to_ids(digit) for digit in GRADES])
    answer = laws(asked)[-1][digits]
    expected = float((answer / answer.sum()) @ torch.arange(10.0))
    shown = next(one for one in step.verdict.exhibits if one.title == "Grade of the step")
    assert shown.value == pytest.approx(expected, abs=1e-3)
    assert shown.note.startswith("By the large model's answer.")
    (step, *_) = run("specreason", graded(4.0))
    shown = next(one for one in step.verdict.exhibits if one.title == "Grade of the step")
    assert shown.note.startswith("By the likelihood of the step.")


def ended_early(monkeypatch) -> list[int]:
    """Make a token within the small model's first step an end of the text. Returns its text up to that token."""
    text, steps = alone("small"), Steps(models().target.tokenizer, "sentence", ())
    long = next(n for n in range(1, len(text)) if steps.ended(text[:n]))
    count = next(n for n in range(2, long) if text[n - 1] not in text[: n - 1])
    monkeypatch.setattr(models().target, "end_tokens", frozenset([text[count - 1]]))
    return text[:count]


def test_a_step_ends_with_the_text(monkeypatch):
    """Its grade is that of the tokens up to the end of the text, which is a drawn token and stays in the draft."""
    written = ended_early(monkeypatch)
    (step,) = run("specreason", graded(0.0))
    assert step.tree.tokens == step.output == written and step.stop == "eos"
    law = laws([*prompt(), *written])[len(prompt()) - 1 :]
    logs = [math.log(law[place, token]) for place, token in enumerate(written)]
    shown = next(one for one in step.verdict.exhibits if one.title == "Grade of the step")
    assert shown.value == pytest.approx(9 * math.exp(sum(logs) / len(logs)), abs=1e-3)


def test_no_cue_is_looked_for_behind_the_end_of_a_text(monkeypatch):
    written, said = ended_early(monkeypatch), models().target.tokenizer.decode
    behind = said(alone("small")[len(written) : len(written) + 2]).strip()
    assert behind and behind not in said(written)
    monkeypatch.setitem(speculative_thinking.KINDS, "both", ({"verification": (behind,)},))
    steps = run("speculative_thinking", verifier("greedy"), ahead=len(written) + 4)
    assert all(step.p is None for step in steps), "the small model writes everything"
    assert text_of(steps) == written


def test_an_end_of_the_text_is_a_step_by_itself():
    for tokenizer in (models().target.tokenizer, None):
        steps = Steps(tokenizer, "line", {5})
        assert steps.ended([5]) and steps.ended([9, 5]) and not steps.ended([5, 9])


class Spelled:
    """A tokenizer that spells one of the digits with two tokens. missing: that digit."""

    def __init__(self, tokenizer, missing):
        self.tokenizer, self.missing = tokenizer, missing

    def __call__(self, text, **how):
        found = self.tokenizer(text, **how)
        return {"input_ids": [1, 2]} if text == self.missing else found


@pytest.mark.parametrize("digit", ["0", "7"])
def test_a_model_without_a_token_for_each_digit_is_not_asked(digit, monkeypatch):
    target = models().target
    monkeypatch.setattr(target, "tokenizer", Spelled(target.tokenizer, digit))
    with pytest.raises(UserError) as refused:
        built("specreason", models(), score="question")
    sentence = (
        f"{target.name} has no single token for each digit, so it cannot be asked for a grade."
    )
    assert str(refused.value) == sentence
    built("specreason", models(), score="likelihood")  # that asks no question


def test_without_a_cue_the_small_model_writes_everything(monkeypatch):
    monkeypatch.setitem(speculative_thinking.KINDS, "both", ())
    assert text_of(run("speculative_thinking", verifier("greedy"), ahead=12)) == alone("small")


def test_a_cue_ahead_hands_over_for_some_tokens(monkeypatch):
    """The cue is a word that the small model itself would write at the beginning of a later step."""
    monkeypatch.setitem(speculative_thinking.KINDS, "both", ({"verification": ("Tens",)},))
    steps = run("speculative_thinking", verifier("greedy"), ahead=6, taken=5, verifying=9)
    text, writers = list(prompt()), []
    for step in steps:
        small = step.p is None
        writers.append(small)
        if not small:
            assert step.output == [int(laws(text)[-1].argmax())]
        text += step.output
    first = writers.index(False)
    assert first > 0 and not any(writers[first : first + 9]), "so many tokens, one after another"
    assert writers.count(False) % 9 == 0 or not writers[-1]
    assert text[len(prompt()) :][:first] == alone("small")[:first]
    assert any("Tens" in str(one) for one in steps[first].tree.exhibits)


def test_nobody_looks_beyond_the_drafts_context():
    """The draft's context holds 24 tokens and no more."""
    draft = tiny_model("gpt2", max_position_embeddings=24)
    pair = Models(tiny_model(), {"draft": draft})
    steps = steps_of(pair, "speculative_thinking", [3, 5, 7, 9] * 5, 10, ahead=12)
    assert len(text_of(steps)) == 10


@pytest.mark.parametrize(
    "said, kind",
    [
        ("Wait, that is 12.", "reflection"),
        ("Let me double-check it", "verification"),
        ("Yes, so 5", "affirmation"),
        ("The paycheck and the eyes await", None),
        ("Yesterday a waiter came", None),
        ("After the paycheck, check", "verification"),
        ("Checking it", "verification"),
    ],
)
def test_cues_are_words(said, kind):
    found = cue_in(said, CUES)
    assert (found and found[0]) == kind
