"""Pieces, numbers and steps in words; see ``tests.viz.tables``."""

import pytest

from tests.viz.tables import MODEL, cases

WORDS = {
    "a space is seen": ("Draftscope.visible(' dog')", "␣dog"),
    "line ends and tabs are seen": (r"Draftscope.visible('\r\n\t')", "␍⏎⇥"),
    "special tokens go by their names": (
        "['<|endoftext|>', '</s>', '<|im_start|>', '<b>'].map(Draftscope.visible)",
        ["⟨end⟩", "⟨end⟩", "⟨im_start⟩", "<b>"],
    ),
    "an empty piece is seen": ("Draftscope.visible('')", "∅"),
    "a direction mark is written as its code": (r"Draftscope.visible('\u202eabc')", "‹202e›abc"),
    "a zero is written as its code": (r"Draftscope.visible('\u0000')", "‹0000›"),
    "running text keeps spaces and line ends": (r"Draftscope.runningText(' a\nb')", " a\nb"),
    "running text shows what would turn it": (r"Draftscope.runningText('\u202ea')", "‹202e›a"),
    "line separators break running text": (r"Draftscope.runningText('a\u2028b')", "a\nb"),
    "short texts stay": ("Draftscope.shorten('abc', 3)", "abc"),
    "long texts are cut": ("Draftscope.shorten('abcd', 3)", "ab…"),
    "no character is cut in two": ("Draftscope.shorten('😀😀😀', 2)", "😀…"),
    "quotes": ("Draftscope.quote(' dog')", "‘␣dog’"),
    "no pieces, nothing to mend": ("Draftscope.mend([])", []),
    "whole characters need no mending": ("Draftscope.mend(['a', '€'])", ["a", "€"]),
    "a stray byte stays": ("Draftscope.mend(['⟨a9⟩', 'x'])", ["⟨a9⟩", "x"]),
    "a stray byte before a whole letter stays": (
        "Draftscope.mend(['⟨e2⟩', '⟨e2⟩⟨82⟩⟨ac⟩y'])",
        ["⟨e2⟩", "€y"],
    ),
    "a byte in the middle of a piece stays": ("Draftscope.mend(['a⟨c3⟩b', 'c'])", ["a⟨c3⟩b", "c"]),
    "two bytes make one letter": ("Draftscope.mend(['⟨c3⟩', '⟨a9⟩'])", ["", "é"]),
    "unknown probability": ("Draftscope.prob(null)", "–"),
    "certainty": ("[0, 1].map(Draftscope.prob)", ["0", "1"]),
    "usual probabilities": ("[0.414, 0.5].map(Draftscope.prob)", ["0.41", "0.50"]),
    "small probabilities": ("[0.004, 0.00005].map(Draftscope.prob)", ["0.004", "under 0.0001"]),
    "probabilities that differ": (
        "[Draftscope.probs(0.091, 0.094), Draftscope.probs(0.2, 0.3), Draftscope.probs(0.5, 0.5)]",
        [["0.0910", "0.0940"], ["0.20", "0.30"], ["0.50", "0.50"]],
    ),
    "large probabilities": ("[0.9975, 0.99999].map(Draftscope.prob)", ["0.9975", "over 0.9999"]),
    "milliseconds": (
        "[0.126, 12.34, 123.4, 12345].map(Draftscope.duration)",
        ["0.13 ms", "12.3 ms", "123 ms", "12.3 s"],
    ),
    "one and many": ("[1, 2].map((n) => Draftscope.plural(n, 'token'))", ["1 token", "2 tokens"]),
    "numbers of exhibits": (
        "[3, 1234, 0.4, 12.345, 345.6, 0.00421, 0.00004, -2.5e9, 0].map(Draftscope.numberText)",
        ["3", "1234", "0.40", "12.35", "346", "0.0042", "4.0e-5", "-2.5e+9", "0"],
    ),
    "cells of exhibits": (
        "[null, true, ' dog', 0.5, {token: 3, piece: ' dog'}].map(Draftscope.cellText)",
        ["–", "yes", " dog", "0.50", "␣dog"],
    ),
}

DRAWN = "Draftscope.drawnWords(Draftscope.enrich(toy.told([], ['x'], 'bonus', {{p: {p}}}), 0, {{sampling: {{temperature: {t}}}}}))"

SENTENCES = {
    "a drawn token that was not the favourite": (
        DRAWN.format(p="[[1, 'y', 0.6], [0, 'x', 0.05]]", t=1),
        "drawn, p 0.05",
    ),
    "after refusals the chance is that in what is left of p": (
        DRAWN.format(
            p="[[1, 'y', 0.6], [0, 'x', 0.05]], residual: [[1, 'y', 0.9], [0, 'x', 0.1]]", t=1
        ),
        "drawn, 0.10 of what is left",
    ),
    "the favourite need not be explained": (
        DRAWN.format(p="[[0, 'x', 0.6], [1, 'y', 0.05]]", t=1),
        "",
    ),
    "at temperature 0 nothing is drawn": (
        DRAWN.format(p="[[1, 'y', 0.6], [0, 'x', 0.6]]", t=0),
        "",
    ),
    "a step in words": (
        f"Draftscope.stepSentence({MODEL}.steps[0])",
        "3 drafted, 1 kept and the target added ‘x’: 2 tokens in one pass.",
    ),
    "sources in words": (
        "['context 35', 'context 17:20', 'block 6', 'draft model'].map(Draftscope.sourceWords)",
        [
            "copied from token 36 of the text",
            "copied from tokens 18 to 20 of the text",
            "place 6 of the drafted block",
            "from draft model",
        ],
    ),
    "a step that ended with a refusal in words": (
        "Draftscope.stepSentence(Draftscope.enrich(toy.step([[-1, 'rejected']], ['x'], 'recovered'), 0))",
        "1 drafted, 0 kept, then the target wrote ‘x’ instead: 1 token in one pass.",
    ),
    "a proposal says nothing of p": (
        "((step) => [null, 1].map((node) => Draftscope.proposal(step, node)))(Draftscope.enrich(toy.step([[-1, 'accepted', 0.9, 0.5], [-1, 'rejected', 0.1]], ['n0']), 0))",
        [
            "Proposed as the next token: ‘n0’ (q 0.50), ‘n1’. The target has not judged the draft yet.",
            "‘n1’ is proposed. The target has not judged it yet.",
        ],
    ),
    "a step without a draft in words": (
        f"Draftscope.stepSentence({MODEL}.steps[1])",
        "Nothing drafted; the target wrote ‘y’.",
    ),
}

DECODER = (
    "Draftscope.stepSentence(Draftscope.enrich({{...toy.step({nodes}, []), judgements: [], distributions: []}}, 0, "
    "{{drafter: {{family: 'decoder', key: 'beams'}}, verifier: {{}}, sampling: {{}}}}))"
)
SENTENCES |= {
    "a pass over several texts may decide nothing": (
        DECODER.format(nodes="[]"),
        "One more pass over all texts; nothing is decided yet.",
    ),
    "a pass over several texts that decides": (
        DECODER.format(nodes="[[-1, 'accepted'], [0, 'accepted'], [-1, 'ignored']]"),
        "2 tokens decided in one pass over all texts.",
    ),
}
CASES = cases(words=WORDS, sentences=SENTENCES)


@pytest.mark.parametrize("case", CASES)
def test_it_gives(given, case):
    assert given[case] == CASES[case][1]
