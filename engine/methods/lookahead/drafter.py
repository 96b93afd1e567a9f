"""Lookahead decoding: Jacobi iterations leave n-grams behind, and these n-grams are drafted.

Fu et al., "Break the Sequential Dependency of LLM Inference Using Lookahead Decoding" (2024). A window of W columns and
N - 1 levels is added to the target's pass as rows that are never judged. The oldest level stands behind the root as a
chain. Each further level holds the guesses of the next pass, one place further on; a guess sees its own column
and the tokens before the column's first token. For each column the pass predicts the token behind its newest guess. The
column and this token make an n-gram. Then the oldest level is dropped, and the predicted tokens become the newest
level. The pool keeps the latest n-grams by their first token; those that begin with the root are the draft, judged in
the same pass.

The branches are built from the target's likeliest tokens and not drawn from a law, so they are judged one-hot and are
exact under every exact rule.
"""

from collections import OrderedDict

import torch

from engine.core.drafter import Drafter
from engine.core.exhibits import Table, Token
from engine.core.options import switch, whole
from engine.core.proposal import Proposal
from engine.core.sampling import likeliest
from engine.core.seen import MOST_PROBES, Probes
from engine.core.tree import ROOT, DraftTree

Ngram = tuple[int, ...]


class NgramPool:
    """For each first token, the last ``most`` n-grams that begin with it, stored without it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._after: dict[int, OrderedDict[Ngram, None]] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, ngram: Ngram) -> None:
        after = self._after.setdefault(ngram[0], OrderedDict())
        self._size -= len(after)
        after[ngram[1:]] = None
        after.move_to_end(ngram[1:])
        if len(after) > self._most:
            after.popitem(last=False)
        self._size += len(after)

    def after(self, token: int) -> list[Ngram]:
        """Return the n-grams behind this token, the latest first, without the token itself."""
        return list(reversed(self._after.get(token, ())))


class LookaheadDrafter(Drafter):
    key = "lookahead"
    title = "Lookahead"
    family = "self"
    summary = "A window of parallel guesses in the target's pass leaves n-grams, which are drafted."
    draw_kinds = ("one_hot",)
    uses_target = True
    options = (
        whole("window", 5, 1, 16, "Window").meaning(
            f"Columns of the window: places guessed ahead (at most {MOST_PROBES} guesses on all levels)."
        ),
        whole("ngram", 4, 2, 6, "N-gram").meaning(
            "Tokens of an n-gram; the window has one level less."
        ),
        whole("branches", 4, 1, 16, "N-grams drafted").meaning(
            "Most n-grams drafted in each step."
        ),
        switch("prompt_ngrams", False, "The prompt's n-grams").meaning(
            "Put the prompt's n-grams into the pool as well."
        ),
    )
    trial = {"window": 2, "ngram": 3, "branches": 2}

    def __init__(self, settings, target) -> None:
        super().__init__(settings)
        self.target = target
        self._width = min(settings["window"], MOST_PROBES // (settings["ngram"] - 1))

    @classmethod
    def build(cls, settings, models):
        return cls(settings, models.target)

    def begin(self, start):
        super().begin(start)
        prompt, size = list(start.prompt), self.settings["ngram"]
        self._pool = NgramPool(self.settings["branches"])
        if self.settings["prompt_ngrams"]:
            for first in range(len(prompt) - size + 1):
                self._pool.add(tuple(prompt[first : first + size]))
        guesses = [self.chance.draw(torch.ones(len(prompt))) for _ in range(self._width)]
        self._levels = [[prompt[place] for place in guesses]]

    def propose(self, context, max_depth):
        tree = DraftTree()
        drafted = self._pool.after(context[-1])
        for ngram in drafted:
            tree.chain(ngram[:max_depth], "n-gram of the window")
        tree.exhibits.append(self._table(len(context), len(drafted)))
        return Proposal(tree, self._window(len(tree), len(context)))

    def _window(self, first: int, position: int) -> Probes | None:
        """Return the window as probe rows, with as many columns as the target's context has room for; None if it has no
        room. first: the number of the first probe row."""
        room = self.target.max_context - position - len(self._levels)
        width = min(self._width, room)
        if width < 1:
            return None
        parents, tokens = [], []
        for level, guesses in enumerate(self._levels):
            for column in range(width):
                above = first + (level - 1) * width + column
                before = ROOT if column == 0 else first + column - 1
                parents.append(above if level else before)
                tokens.append(guesses[column])
        guessed = torch.tensor(self.target.readable(tokens), device=self.target.device)
        return Probes.embedded(self.target.embed(guessed), parents)

    def observe(self, kept):
        if kept.probes is None:
            return
        width = len(kept.probes) // len(self._levels)
        said = likeliest(kept.probes[-width:])
        said += self._levels[-1][width:]  # columns that had no room
        if len(self._levels) < self.settings["ngram"] - 1:
            self._levels.append(said)
            return
        for column in range(width):
            self._pool.add((*(level[column] for level in self._levels), said[column]))
        self._levels = [*self._levels[1:], said]

    def _table(self, position: int, drafted: int) -> Table:
        """Show each place ahead with the guesses of all levels. Where these are equal, the window has come to rest."""
        rows, still = [], 0
        levels, width = len(self._levels), self._width
        for place in range(width + levels - 1):
            columns = [place - level for level in range(levels)]
            guesses = [
                guesses[column] if 0 <= column < width else None
                for guesses, column in zip(self._levels, columns, strict=True)
            ]
            present = [guess for guess in guesses if guess is not None]
            same = len(present) > 1 and len(set(present)) == 1
            still += same
            cells = [None if guess is None else Token(guess) for guess in guesses]
            rows.append([position + place, *cells, same])
        names = [f"level {level + 1}" for level in range(levels)]
        note = (
            f"Level 1 is the oldest. At {still} of {len(rows)} places all levels name one token. The pool holds "
            f"{len(self._pool)} n-grams; {drafted} of them begin with the last token and were drafted."
        )
        return Table("Lookahead window", ["Position", *names, "At rest"], rows, note=note)
