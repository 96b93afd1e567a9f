"""The penalty on repeated structure: what counts as a repetition, and the same text whatever is drafted."""

from functools import cache

import pytest

from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.loops import run_loop
from engine.methods import drafters
from engine.methods.rpg.line_structure import kinds, repeated
from engine.parts.loading import load_models
from engine.rules import verifier
from presets import family

TEXT = "Write 4 JSON records with id, name.\n"
COUNT, DECAY = 40, 0.4


def test_a_line_is_the_kinds_of_its_words():
    assert kinds("    if name == 12:") == kinds("    if other == 7:")
    assert kinds("    if name == 12:") != kinds("if name == 12:")
    assert kinds("x = 'a b'") == kinds('y = "c"')
    assert kinds("return x") != kinds("while x")


@pytest.mark.parametrize(
    "lines, found",
    [
        (["a = 1", "b = 2"], (1, 1)),
        (["a = 1", "b = 2", "c = 3"], (1, 2)),
        (["a = 1", "b = 2", "return c"], (0, 0)),
        (["if a:", "  b()", "if c:", "  d()"], (2, 1)),
        (["", "", ""], (0, 0)),
    ],
)
def test_the_block_that_repeats(lines, found):
    assert repeated([kinds(line) for line in lines]) == found


@cache
def models():
    return load_models(family(), {"draft": "draft"})


@cache
def prompt():
    return tuple(models().target.tokenizer(TEXT)["input_ids"])


def written(key, rule, sampling, **options):
    cls = drafters()[key]
    made = cls.build(resolve(key, cls.options, options), models())
    request = TextRequest(made, rule, sampling, prompt(), COUNT)
    return [token for step in run_loop(models().target, request) for token in step.output]


def reference():
    """Every line split anew from the decoded text, at every token."""
    target, text = models().target, list(prompt())
    while len(text) < len(prompt()) + COUNT and text[-1] not in target.end_tokens:
        logits = target.session(len(text)).extend(text).float()
        pieces = [target.tokenizer.decode(text[:end]) for end in range(len(text) + 1)]
        *lines, begun = pieces[-1].split("\n")
        size, times = repeated([kinds(line) for line in lines])
        if size and not begun.strip():
            start = len("\n".join([*lines[:-size], ""])) + len(lines[-size])
            start -= len(lines[-size].lstrip())
            first = next(end for end in range(len(text)) if len(pieces[end + 1]) > start)
            logits[text[first]] *= DECAY**times if logits[text[first]] > 0 else DECAY**-times
        text.append(int(logits.argmax()))
    return text[len(prompt()) :]


def test_every_drafter_writes_the_text_of_the_plain_script():
    rule = lambda: verifier("rpg", {"decay": DECAY})
    expected = reference()
    assert expected != written("none", verifier("greedy"), Sampling())
    for key in ("none", "chain", "prompt_lookup"):
        assert written(key, rule(), Sampling()) == expected
    drawn = Sampling(0.8, seed=4)
    assert written("chain", rule(), drawn) == written("none", rule(), drawn)
