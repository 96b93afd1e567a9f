"""The figure of First Finish Search: the law of the answer if all texts advance in lockstep, and if they advance with
drafts, computed exactly for a target that is a table."""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from engine.core.exhibits import Curve, Exhibit, Series, Table
from engine.methods.first_finish.drafter import Lane
from engine.proof.enumeration import Law, Path
from engine.proof.listed_texts import END, apart

LANES, LENGTH, LONGEST = 4, 4, 9
PROMPT = (1, 2, 1)
NEXT = {
    1: {2: 0.9, END: 0.1},
    2: {1: 0.75, 3: 0.1, END: 0.15},
    3: {3: 0.25, 4: 0.25, 5: 0.25, END: 0.25},
    4: {3: 0.3, 5: 0.4, END: 0.3},
    5: {4: 0.5, 3: 0.2, END: 0.3},
}
"""For each token, the probabilities of the next token. Tokens 1 and 2 alternate, which is easy to guess from earlier
tokens; 3, 4 and 5 come in any order. A text of ``LONGEST`` tokens stops there."""
NEVER = 10**6  # the number of passes that stands for a text without an end


@dataclass(frozen=True)
class Figures:
    """Laws of the answer, by name: the law of a single text; the law of the text that finishes first if ``LANES`` texts
    advance in lockstep; and the law of the text that finishes first if these texts advance with drafts."""

    laws: dict[str, Law]


def measured() -> Figures:
    single = texts()
    return Figures(
        {
            "one text": single,
            "in lockstep": first_of(single, _in_lockstep, LANES),
            "with drafts": first_of(single, with_drafts, LANES),
        }
    )


def texts() -> Law:
    """The law of a single text."""
    law: Law = {}
    open_texts = {(): 1.0}
    for _ in range(LONGEST):
        grown = {
            (*path, token): share * chance
            for path, share in open_texts.items()
            for token, chance in NEXT[path[-1] if path else PROMPT[-1]].items()
        }
        law |= {path: share for path, share in grown.items() if path[-1] == END}
        open_texts = {path: share for path, share in grown.items() if path[-1] != END}
    return law | open_texts


def _in_lockstep(text: Path) -> int:
    return len(text)


def with_drafts(text: Path, prompt: Path = PROMPT) -> int:
    """The number of passes that a text takes if its drafts are the guesses of ``engine.methods.first_finish``."""
    lane, count = Lane(0, prompt), 0
    while len(lane.path) < len(text):
        rest = text[len(lane.path) :]
        pairs = zip(lane.guesses(LENGTH), rest, strict=False)
        right = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
        lane.path += rest[: right + 1]
        count += 1
    return count


def first_of(law: Mapping[Path, float], passes: Callable[[Path], int], lanes: int) -> Law:
    """The law of the text that ends first among ``lanes`` independent texts; if two end in the same pass, the earlier
    lane wins.
    passes: the number of passes that a text takes."""
    passes_of = {text: passes(text) if text[-1] == END else NEVER for text in law}
    behind: dict[int, float] = {}  # passes -> the probability that a text takes more
    for count in {*passes_of.values()}:
        behind[count] = sum(share for text, share in law.items() if passes_of[text] > count)
    with_it = {
        count: sum(share for text, share in law.items() if passes_of[text] >= count)
        for count in behind
    }
    return {
        text: share
        * sum(
            behind[passes_of[text]] ** before * with_it[passes_of[text]] ** (lanes - 1 - before)
            for before in range(lanes)
        )
        for text, share in law.items()
    }


def exhibits(figures: Figures) -> list[Exhibit]:
    laws, lengths = figures.laws, list(range(1, LONGEST + 1))
    rows = [
        [name, round(_mean_length(law), 2), round(apart(law, laws["in lockstep"]), 3)]
        for name, law in laws.items()
    ]
    return [
        Table(
            "The answer of four texts",
            ["law", "mean tokens", "total variation from lockstep"],
            rows,
            note="Worked out exactly for a table of six tokens. The four texts have the same law in both ways; only the choice differs.",
        ),
        Curve(
            "How long the answer is",
            lengths,
            [
                Series(name, [_share_of_length(law, length) for length in lengths])
                for name, law in laws.items()
            ],
            x_label="tokens",
            y_label="probability",
            note="With drafts a long text that is easy to guess may be first in time.",
        ),
    ]


def _mean_length(law: Law) -> float:
    return sum(share * len(text) for text, share in law.items())


def _share_of_length(law: Law, length: int) -> float:
    return sum(share for text, share in law.items() if len(text) == length)
