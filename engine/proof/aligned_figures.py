"""The figures that show what "exact" means under a constraint: the laws of eight short texts, computed for a target
that is a table."""

import itertools
from dataclasses import dataclass

import torch

from engine.core.drafter import Drafter
from engine.core.exhibits import Curve, Exhibit, Matrix, Series, Table
from engine.core.memory import Memory
from engine.core.tree import ROOT, DraftTree
from engine.methods.asap.rule import Asap
from engine.methods.awrs.rule import Awrs
from engine.methods.none.drafter import NoDrafter
from engine.proof.enumeration import Law, Path
from engine.proof.listed_texts import END, Laws, Listed, apart, every_text, written
from engine.proof.memo import MemoSession

LETTERS = (".", "a", "b", "?")
LENGTH = 3
VALID = tuple(itertools.product((1, 2), repeat=LENGTH))
ENDS = (0.02, 0.01, 0.05, 0.02, 0.9, 0.3, 0.6, 0.8)
"""The probability that the target ends each text in VALID with a full stop. Otherwise the target writes a question
mark, which the constraint forbids."""
PROMPT = (3,)
TEXTS = (1, 10, 100)
LONGEST = 40  # the number of texts at the end of the curves
VISITORS = 10
"""The number of visitors, each with a memory of their own, over whom each curve is averaged."""


class Letters:
    """A target that is a table: "a" is likelier than "b" everywhere, but a text that begins with "a" seldom ends validly."""

    name, device, dtype = "letters", torch.device("cpu"), torch.float32
    max_context, vocab_size = 64, len(LETTERS)
    end_tokens = frozenset({END})

    def session(self, capacity: int, features=()) -> MemoSession:
        return MemoSession(self, tuple(features))

    def row(self, text: Path, features: Path) -> tuple[torch.Tensor, None]:
        path = text[len(PROMPT) :]
        law = [1.0, 0.0, 0.0, 0.0]
        if len(path) < LENGTH:
            law = [0.0, 0.6, 0.4, 0.0] if path else [0.0, 0.7, 0.3, 0.0]
        elif path in VALID:
            ends = ENDS[VALID.index(path)]
            law = [ends, 0.0, 0.0, 1 - ends]
        return torch.tensor(law).log(), None


class EvenLetters(Drafter):
    """Drafts a chain of letters; each letter is drawn from a uniform law."""

    key, title, family = "even_letters", "Even letters", "chain"
    summary = "Drafts letters that are drawn evenly."
    draw_kinds, shape = ("iid",), "chain"

    def propose(self, context, max_depth):
        tree, node = DraftTree(), ROOT
        even = torch.tensor([0.0, 0.5, 0.5, 0.0])
        for _ in range(min(LENGTH, max_depth)):
            node = tree.draw(node, self.chance.draw(even), "iid", even, "letter")
        return tree


@dataclass(frozen=True)
class Figures:
    """The figures of the method's card.
    valid: the probability that the target's own text is valid. laws: laws of the valid texts, by the law's name.
    apart: for each drafter, the total variation between the law of a visitor's next text and the global law, after 0, 1
    ... texts of this visitor; the mean over visitors."""

    valid: float
    laws: dict[str, Law]
    apart: dict[str, list[float]]


def measured() -> Figures:
    target = Letters()
    laws = Laws(target, PROMPT, VALID)
    whole = laws.whole()
    free = {text: laws.free(text) for text in whole}
    named_laws = {"free": free, "masked": laws.masked(), "global": whole}
    taught = list(_after_each_text(target, laws, NoDrafter, 0, max(TEXTS)))
    named_laws |= {f"ASAp {count}": taught[count] for count in TEXTS}

    def write(rule, chance):
        return written(target, NoDrafter({}), rule, PROMPT, _listed(), chance=chance)

    named_laws["AWRS drawn"], weighed = every_text(write, Awrs)
    total = sum(weighed.values())
    named_laws["AWRS weighed"] = {text: weight / total for text, weight in weighed.items()}
    curves = {
        name: _curve(target, laws, drafter)
        for name, drafter in (("one token a pass", NoDrafter), ("with drafts", EvenLetters))
    }
    return Figures(laws.valid(), named_laws, curves)


def _listed() -> Listed:
    return Listed(VALID, len(LETTERS))


def _after_each_text(target: Letters, laws: Laws, drafter: type[Drafter], first: int, count: int):
    """Yields the law from which the next text is drawn, after 0, 1 ... ``count`` texts were written with one memory.
    first: the seed of the first text."""
    memory = Memory()
    yield laws.masked()
    for seed in range(first, first + count):
        rule = Asap()
        written(target, drafter({}), rule, PROMPT, _listed(), seed, memory)
        bounds = rule.learned()
        yield laws.masked(lambda prefix, bounds=bounds: bounds.get(prefix, 1.0))


def _curve(target: Letters, laws: Laws, drafter: type[Drafter]) -> list[float]:
    whole, runs = laws.whole(), []
    for visitor in range(VISITORS):
        learned = _after_each_text(target, laws, drafter, 1000 * visitor, LONGEST)
        runs.append([apart(law, whole) for law in learned])
    return [sum(distances) / VISITORS for distances in zip(*runs, strict=True)]


def exhibits(figures: Figures) -> list[Exhibit]:
    texts = list(figures.laws["global"])
    columns = ["".join(LETTERS[token] for token in text) for text in texts]
    values = [[law.get(text, 0.0) for text in texts] for law in figures.laws.values()]
    whole, places = figures.laws["global"], list(range(LONGEST + 1))
    return [
        Matrix(
            "The chance of each valid text",
            list(figures.laws),
            columns,
            values,
            note=f"Free: what the target writes without a constraint; {figures.valid:.0%} of it is valid. Global: the same, given that it is. "
            "ASAp 10: what it draws from after 10 texts.",
        ),
        Table(
            "How far from the global law",
            ["law", "total variation"],
            [
                [name, round(apart(law, whole), 4)]
                for name, law in figures.laws.items()
                if name not in ("free", "global")
            ],
            note="The largest difference of the chance of any set of texts.",
        ),
        Curve(
            "ASAp nears the global law",
            places,
            [Series(name, line) for name, line in figures.apart.items()],
            x_label="texts so far",
            y_label="total variation",
            note=f"The mean over {VISITORS} memories. The rows of a refused draft teach as well.",
        ),
    ]
