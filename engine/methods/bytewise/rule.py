"""Speculative sampling letter by letter, for drafts from another vocabulary."""

from collections.abc import Sequence

from torch import Tensor

from engine.core.exhibits import Later, Table
from engine.core.rule import Case, Verdict
from engine.core.tree import ROOT, DraftTree, Draw
from engine.methods.bytewise.letters import DrawnString, next_token_law
from engine.methods.shared.spelling import BYTES
from engine.rules.rejection import Rejection, SiblingTrial, normalised
from engine.rules.sentences import REJECTION


class Bytewise(Rejection):
    """The letters of a drawn string are judged one by one, each with probability min(1, p / q), where p and q are the laws of
    the next letter. Behind each letter the target decides whether its token ends there. Seen from the tokens, that is one
    law of the next token for each place (``next_token_law``), by which the children of the place are judged: a child is kept
    with the chance that its letters are kept and its token ends.

    A draft without such a string is judged by its draws alone.
    """

    key = "bytewise"
    title = "Byte by byte"
    summary = (
        "judges the bytes of a draft from another vocabulary, each with probability min(1, p/q)"
    )
    shapes = frozenset({"spelled"})
    exact_kinds = frozenset({"one_hot"})
    sentences = {
        "bytes.kept": "Its bytes were judged one after another, and the target’s token had to end with them: together a "
        "chance of {accept}; the coin fell at {coin}: accepted.",
        "bytes.sure": "Its bytes were sure to be kept, and the target’s token to end with them: accepted.",
        "bytes.refused": "Its bytes were judged one after another, and the target’s token had to end with them: together a "
        "chance of {accept}; the coin fell at {coin}: rejected.",
        "recovered": "Where a byte was refused, or the target’s token ended elsewhere, the target wrote its own token: "
        "{final}.",
        "bonus": REJECTION["bonus"],
    }

    def judge(self, case: Case) -> Verdict:
        self._string = case.tree.aside if isinstance(case.tree.aside, DrawnString) else None
        verdict = super().judge(case)
        if self._string is not None and self._string.letters:
            string, p = self._string, case.p[0].double().cpu()
            verdict.exhibits.append(Later(lambda: _table(string, p)))
        return verdict

    def trial_of(self, p: Tensor, tree: DraftTree, draws: Sequence[Draw]) -> SiblingTrial:
        if self._string is None:
            return super().trial_of(p, tree, draws)
        return LetterTrial(self._judged(p, tree.parents[draws[0].node]), tree.laws)

    def law_behind(self, case: Case, place: int) -> Tensor:
        law = super().law_behind(case, place)
        return law if self._string is None else self._judged(law, place)

    def _judged(self, p: Tensor, place: int) -> Tensor:
        """[V], the law of the next token behind a place, by the letters that were drafted behind it."""
        string = self._string
        first = 0 if place == ROOT else string.ends[place]
        p = normalised(p.double().cpu())
        return next_token_law(string.vocabulary, p, string.letters[first:], string.laws[first:])


class LetterTrial(SiblingTrial):
    """The trial of the children of a place; p is the law of the next token by the judged letters."""

    def weigh(self, token: int, drawn: Draw) -> tuple[str, float, float]:
        return "bytes", float(self.p[token]), 1.0

    def refuse(self, token: int, rule: str, drawn: Draw) -> None:
        super().refuse(token, "one_hot", drawn)


def _face(letter: int) -> str:
    if letter >= BYTES:
        return "special token"
    return chr(letter) if 32 < letter < 127 else "␣" if letter == 32 else f"⟨{letter:02x}⟩"


def _table(string: DrawnString, p: Tensor) -> Table:
    """The letters behind the root, as far as one token of the target can go."""
    rows = []
    for place, step in enumerate(string.vocabulary.along(p, string.letters)):
        here, drawn = float(step.law[step.letter]), float(string.laws[place, step.letter])
        ending = float(p[step.ending].sum())
        mass = ending + float(p[step.longer].sum())
        ends = ending / mass if mass > 0 else None
        rows.append([_face(step.letter), drawn, here, min(1.0, here / drawn), ends])
    columns = ["byte", "q", "p", "kept with", "token ends here"]
    note = "The first token of the target’s, byte by byte; each row is given those above it."
    return Table("Byte by byte", columns, rows, note=note)
