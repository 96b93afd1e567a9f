"""SSD: while a pass of the target runs, drafts are prepared for the likeliest outcomes of this pass, in the loop
``engine.core.prepared``.

Kumar et al., "Speculative Speculative Decoding" (2026), whose algorithm is called Saguaro.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from engine.core.exhibits import Later, Table, Token
from engine.core.options import whole
from engine.core.tree import ROOT, DraftTree, Kind
from engine.methods.shared.draft_model import DraftModelDrafter

MOST_ROWS = 6  # most rows of the exhibit's table


@dataclass
class Outcome:
    """One possible outcome of the target's pass over a draft: the draft's first tokens are kept, and then the target
    writes a token of its own.

    kept: the number of kept tokens. token: the target's token. chance: the outcome's probability according to the draft
    model's laws q. tokens, laws, kinds: the next draft, prepared for this outcome; for each of its tokens, the token
    itself, its law q, and how it was drawn from q.
    """

    kept: int
    token: int
    chance: float
    tokens: list[int] = field(default_factory=list)
    laws: list[Tensor] = field(default_factory=list)
    kinds: list[Kind] = field(default_factory=list)

    def draft(self, most: int) -> DraftTree:
        tree, parent = DraftTree(), ROOT
        for token, law, kind in list(zip(self.tokens, self.laws, self.kinds, strict=True))[:most]:
            parent = tree.draw(parent, token, kind, law, "prepared draft")
        return tree


class SsdDrafter(DraftModelDrafter):
    """Drafts a chain. While the target's pass over this chain runs, the draft model writes a further chain for each of
    the likeliest outcomes of the pass.

    The outcomes are chosen by q and by the drafted tokens. Each prepared chain is drawn from q given its outcome, so it
    has the same law as a draft that is written when the outcome is known. If a drafted token is refused, the target's
    own token is another one, so an outcome never ends with the refused token.
    """

    key = "ssd"
    title = "SSD: drafts prepared for the outcomes"
    family, shape = "chain", "chain"
    summary = "While the target checks a draft, drafts for the likeliest outcomes of that check are prepared."
    options = (
        whole("length", 0, 0, 32).meaning(
            "Tokens drafted in a step (0: the fastest size for this machine, measured)."
        ),
        whole("outcomes", 6, 1, 32).meaning("Outcomes for which a draft is prepared."),
    )
    size_option, usual_size = "length", 4
    loop = "prepared"
    reads_chains = True
    trial = {"length": 2, "outcomes": 3}

    @classmethod
    def kinds(cls, sampling):
        return frozenset({"one_hot" if sampling.greedy else "iid"})

    def begin(self, start):
        super().begin(start)
        self._outcomes: list[Outcome] = []
        self._tree: DraftTree | None = None

    def propose(self, context, max_depth):
        hit = self._hit(context)
        most = min(self.settings["length"], max_depth)
        self._read = hit is None
        self._tree = self._chain(context, most) if hit is None else hit.draft(most)
        self._context, self._outcomes = list(context), []
        return self._tree

    def _hit(self, context) -> Outcome | None:
        """Return the prepared outcome that came true; None if no draft was prepared for the actual outcome."""
        if not self._outcomes:
            return None
        base, before = len(self._context), self._drafted
        for outcome in self._outcomes:
            if context[base:] == [*before[: outcome.kept], outcome.token]:
                return outcome
        return None

    def prepare(self):
        tree, self._tree = self._tree, None
        if tree is None:
            return
        self._drafted, laws = list(tree.tokens), self._laws(tree)
        room = self.max_context - len(self._context) - len(tree) - 2
        length = min(self.settings["length"], room)
        if length > 0:
            self._outcomes = self._likeliest(tree, laws)
            self._write(int(length), len(tree))

    def _laws(self, tree: DraftTree) -> list[Tensor]:
        """Return the draft model's laws q [V]: after the text, and after each drafted token. If some of these tokens
        are not yet in the draft model's session, run it over them first."""
        if self._read:
            first, last = [tree.shown_law(parent) for parent in tree.parents], len(tree) - 1
            return [*first, self._reader.expand([last], tree.tokens[-1:], tree.parents[-1:])[0]]
        if not self.sampling.greedy:
            first = self._reader.read(self._context)
            return [first, *self._reader.expand(range(len(tree)), tree.tokens, tree.parents)]
        laws = [self._reader.read(self._context, len(tree) + 1)]
        for node in range(len(tree)):  # one call reads several of the likeliest tokens
            laws += self._reader.expand([node], tree.tokens[node:][:1], tree.parents[node:][:1])
        return laws

    def _likeliest(self, tree: DraftTree, laws: list[Tensor]) -> list[Outcome]:
        count, reached, outcomes = self.settings["outcomes"], 1.0, []
        for kept, law in enumerate(laws):
            chances = law.clone()
            if kept < len(tree):
                chances[tree.tokens[kept]] = 0.0
            for chance, token in zip(
                *(column.tolist() for column in chances.topk(min(count, len(law)))), strict=True
            ):
                outcomes.append(Outcome(kept, token, reached * chance))
            if kept < len(tree):
                reached *= float(law[tree.tokens[kept]])
        outcomes = [outcome for outcome in outcomes if outcome.chance > 0]
        return sorted(outcomes, key=lambda outcome: (-outcome.chance, outcome.kept))[:count]

    def _write(self, length: int, nodes: int) -> None:
        """Write the prepared drafts: each pass of the draft model adds one token to the draft of every outcome. length:
        the number of tokens in each of these drafts. nodes: the size of the tree that the target is verifying."""
        ends = [(outcome.token, outcome.kept - 1) for outcome in self._outcomes]
        for place in range(length):
            numbers = [nodes + place * len(ends) + row for row in range(len(ends))]
            laws = self._reader.expand(numbers, *zip(*ends, strict=True))
            drawn = None if self.sampling.greedy else self.chance.uniforms(len(ends))
            ends = []
            for row, (outcome, q) in enumerate(zip(self._outcomes, laws, strict=True)):
                kind, token = self._pick(q, None if drawn is None else drawn[row])
                outcome.tokens.append(token), outcome.laws.append(q), outcome.kinds.append(kind)
                ends.append((token, numbers[row]))

    def observe(self, kept):
        super().observe(kept)
        if self._outcomes:
            real = len(kept.path), kept.tokens[-1]
            kept.tree.exhibits.append(
                Later(lambda shown=tuple(self._outcomes): _table(shown, real))
            )


def _table(outcomes: tuple[Outcome, ...], real: tuple[int, int]) -> Table:
    rows = [
        [
            outcome.kept,
            Token(outcome.token),
            outcome.chance,
            Token(outcome.tokens[0]),
            "yes" if (outcome.kept, outcome.token) == real else "no",
        ]
        for outcome in outcomes
    ]
    hit = any(row[-1] == "yes" for row in rows)
    note = "A draft was ready for what came." if hit else "Nothing was ready for what came."
    columns = [
        "drafted tokens kept",
        "then the target's token",
        "chance by q",
        "draft begins",
        "came true",
    ]
    return Table("Outcomes prepared for", columns, rows[:MOST_ROWS], note=note)
