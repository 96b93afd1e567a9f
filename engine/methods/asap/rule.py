"""Grammar-aligned decoding by adaptive sampling with approximate expected futures, ASAp.

Park et al., Grammar-Aligned Decoding (2024). Here a draft is judged by p times an upper bound on the probability that a
valid text follows (``engine.methods.asap.prefixes``). The bounds are learned from all rows of a pass, even those of
rejected tokens.
"""

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from engine.core.bound import Bound
from engine.core.exhibits import Gauge, Later, Table, Token
from engine.core.rule import Case, Verdict
from engine.core.sampling import Sampling
from engine.core.tree import ROOT
from engine.errors import UserError
from engine.methods.asap.prefixes import Prefix, Prefixes, Weights
from engine.rules.rejection import Rejection
from engine.rules.sentences import REJECTION

NO_TEXT = "No text that the constraint allows can be written here: everything that may come first was seen to end nowhere."


class Asap(Rejection):
    """Rejection sampling from p(v) c(v), scaled to sum to 1, instead of from p(v). p is masked by the constraint; c(v)
    is an upper bound on the probability that a valid text follows once v is written. Without a constraint this is
    rejection sampling.

    While c = 1, as in a visitor's first text, this is masked decoding. From text to text c falls towards the true
    probability. With the true probability, the law would be the target's own law of texts, given that the text is
    valid.
    """

    key = "asap"
    title = "Grammar-aligned (ASAp)"
    summary = (
        "under a constraint, weighs p by what earlier texts taught about where valid texts lead"
    )
    learns = True
    constrained_law = "masked decoding weighed by what earlier texts taught"
    sentences = {
        **REJECTION,
        "bonus": "Every token on this path was kept. The token after them was drawn from p, masked and weighed by the chance "
        "that a valid text follows: {final}.",
    }

    def __init__(self, settings=None) -> None:
        super().__init__(settings)
        self._store: Prefixes | None = None
        self._laws: dict[Prefix, Tensor] = {}

    def judge(self, case: Case) -> Verdict:
        bound = case.bound
        if bound is None:
            return super().judge(case)
        case.sampling.check_whole(self.key)
        if self._store is None:
            self._begin(bound, case.sampling)
        tree, text = case.tree, tuple(bound.text)
        paths = [
            tuple(tree.tokens[node] for node in tree.path(place))
            for place in range(ROOT, len(tree))
        ]
        prefixes = [(*text, *path) for path in paths]
        p = self._weights.weighed(case.p, prefixes)
        verdict = super().judge(replace(case, p=p))
        self._learn(case, paths, prefixes)
        walk = [(case.p[place + 1], prefixes[place + 1]) for place in verdict.walk]
        verdict.exhibits += self._exhibits(walk)
        return verdict

    def learned(self) -> dict[Prefix, float]:
        """Return the bounds with which the next text will begin, by prefix."""
        return {} if self._store is None else self._store.bounds()

    def _begin(self, bound: Bound, sampling: Sampling) -> None:
        key = (
            self.key,
            bound.target,
            bound.constraint.key,
            tuple(bound.prompt),
            sampling.temperature,
        )
        has_key = bound.constraint.key is not None
        self._store = bound.memory.store(key, Prefixes) if has_key else Prefixes()
        self._weights = Weights(self._store.bounds())
        self._before = self._store.texts
        self._store.texts += 1
        if self._weights.root <= 0:
            raise UserError(NO_TEXT)

    def _learn(self, case: Case, paths: Sequence[Prefix], prefixes: Sequence[Prefix]) -> None:
        """Store two numbers for every row of the pass that an allowed text could reach: the probability of the row's
        token, and the total probability of the tokens allowed after it. paths: for each row, the tokens of its path in
        the tree. prefixes: for each row, the tokens of the whole text up to and including the row."""
        tree, constraint = case.tree, case.bound.constraint
        free = (case.bound.free.float() / case.sampling.temperature).double().softmax(-1)
        allowed = case.logits > float("-inf")
        masses = (free * allowed).sum(-1).tolist()
        before, self._laws = self._laws, {}
        for row, prefix in enumerate(prefixes):
            p = 1.0
            if row:
                above, token = tree.parents[row - 1] + 1, prefix[-1]
                if prefixes[above] not in self._laws or not allowed[above, token]:
                    continue
                p = float(free[above, token])
            elif prefix:
                if prefix[:-1] not in before:
                    continue
                p = float(before[prefix[:-1]][prefix[-1]])
            self._laws[prefix] = free[row]
            self._store.see(prefix, p, 0.0 if constraint.dead(paths[row]) else masses[row])
        case.bound.memory.trim()

    def _exhibits(self, walk: Sequence[tuple[Tensor, Prefix]]) -> list[Table | Later]:
        """Show the bounds that changed p. walk: for the root and each accepted node, the masked p [V] and the text's
        tokens up to it."""
        rows = [
            [Token(token), float(p[token]), bound, float(p[token]) * bound]
            for p, prefix in walk
            for token, bound in self._weights.below(prefix).items()
        ]
        rows = [row for row in rows if row[1] > 0.001]
        note = f"Used in this text: {self._weights.root:.3g}, learned from {self._before} earlier ones."
        bounds = self._store.bounds

        def gauge() -> Gauge:
            now = bounds().get((), 1.0)
            return Gauge("Chance of a valid text, at most", now, mark=self._weights.root, note=note)

        shown = [Later(gauge)]
        if rows:
            columns = ["token", "p, masked", "a valid text follows: at most", "product"]
            shown.append(Table("What earlier texts taught, along the walk", columns, rows[:24]))
        return shown
