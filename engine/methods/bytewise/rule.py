"""Speculative sampling letter by letter, for drafts from another vocabulary."""

from collections.abc import Sequence

from torch import Tensor

from engine.core.exhibits import Later, Table
from engine.core.rule import Case, Verdict
from engine.core.tree import DraftTree, Draw
from engine.methods.bytewise.judged_letters import DrawnString, JudgedLetter, JudgedString
from engine.methods.shared.spelling import BYTES
from engine.rules.rejection import Rejection, SiblingTrial, normalised
from engine.rules.sentences import REJECTION

TOGETHER = "The drafted bytes were judged one after another, and the target’s token had to end with those of {token}: together a "


class Bytewise(Rejection):
    """The letters of a drawn string are judged one by one, each with probability min(1, p / q). p is the target's law
    of the next letter, summed over all ways to cut the letters into tokens that lead through the tree. For tokens, all
    these judgements together amount to one law of the next token after each node (``JudgedString.laws``), and the
    node's children are judged by this law.

    If a draft does not come with a drawn string of letters, its tokens are judged as in rejection sampling.
    """

    key = "bytewise"
    title = "Byte by byte"
    summary = (
        "judges the bytes of a draft from another vocabulary, each with probability min(1, p/q)"
    )
    shapes = frozenset({"spelled"})
    exact_kinds = frozenset({"one_hot"})
    sentences = {
        "bytes.kept": f"{TOGETHER}chance of {{accept}}; the coin fell at {{coin}}: accepted.",
        "bytes.sure": "The drafted bytes were judged one after another, and the target’s token was sure to end with those of {token}: "
        "accepted.",
        "bytes.refused": f"{TOGETHER}chance of {{accept}}; the coin fell at {{coin}}: rejected.",
        "recovered": "Where a byte was refused, or the target’s token ended elsewhere, the target wrote its own token: "
        "{final}.",
        "bonus": REJECTION["bonus"],
    }

    def judge(self, case: Case) -> Verdict:
        string = case.tree.aside if isinstance(case.tree.aside, DrawnString) else None
        self._laws = None
        if string is None:
            return super().judge(case)
        p = case.p.double().cpu()
        judged = JudgedString(string, case.tree, p / p.sum(-1, keepdim=True))
        self._laws = judged.laws()
        verdict = super().judge(case)
        verdict.exhibits.append(Later(lambda: _table(judged.letters)))
        return verdict

    def trial_of(self, p: Tensor, tree: DraftTree, draws: Sequence[Draw]) -> SiblingTrial:
        if self._laws is None:
            return super().trial_of(p, tree, draws)
        return LetterTrial(self._laws[tree.parents[draws[0].node] + 1], tree.laws)

    def law_behind(self, case: Case, place: int) -> Tensor:
        law = super().law_behind(case, place)
        return law if self._laws is None else normalised(self._laws[place + 1], otherwise=law)


class LetterTrial(SiblingTrial):
    """The trial of all children of one node. p is the law of the next token after the node, computed from the judged
    letters."""

    def weigh(self, token: int, drawn: Draw) -> tuple[str, float, float]:
        return "bytes", float(self.p[token]), 1.0

    def refuse(self, token: int, rule: str, drawn: Draw) -> None:
        super().refuse(token, "one_hot", drawn)


def _face(letter: int) -> str:
    if letter >= BYTES:
        return "special token"
    return chr(letter) if 32 < letter < 127 else "␣" if letter == 32 else f"⟨{letter:02x}⟩"


def _table(letters: Sequence[JudgedLetter]) -> Table:
    """Return a table of the judged letters."""
    rows = [[_face(row.letter), row.q, row.p, row.accept, row.ends] for row in letters]
    columns = ["byte", "q", "p", "kept with", "token ends here"]
    note = "Each row is given those above it. p is a sum over the ways to cut these bytes into the target’s tokens."
    return Table("Byte by byte", columns, rows, note=note)
