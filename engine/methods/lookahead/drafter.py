"""Lookahead decoding: Jacobi iterations leave n-grams behind, and these n-grams are drafted.

Fu et al., "Break the Sequential Dependency of LLM Inference Using Lookahead Decoding" (2024). In addition to the draft,
every pass of the target computes a *window* of guessed tokens that are never judged. The window has W columns and N - 1
levels. The oldest level is a chain of W guesses after the root, one for each column. Below its oldest guess, a column
has one guess for every later level, each for the position after the guess above it. A guess attends to the guesses
above it in its column, to the oldest guesses of the columns before, and to the text.

For each column the pass predicts the token after the newest guess. The N - 1 guesses of the column and the predicted
token make an n-gram. Then the oldest level is dropped, and the predicted tokens become the newest level. A pool stores,
for each first token, the n-grams seen last. The n-grams that begin with the root's token are the draft of the next
step, where the same pass judges the draft and computes the next window.

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
    """For each token, the last ``most`` n-grams that begin with this token, stored without it."""

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
        """Return the stored n-grams that begin with this token, the latest first, each without its first token."""
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
        """Return the window as probe rows. It has as many columns as the target's context has room for; None if there
        is no room for one. first: the number of the first probe row."""
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
        """Return a table that shows, for each coming position, the guess of every level. Where all levels guess the
        same token, the iterations have converged."""
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
