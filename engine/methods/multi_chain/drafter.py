"""Several independent chains of one draft model, merged where they begin alike.

These are the drafts of SpecTr (Sun et al. 2023).
"""

from collections.abc import Sequence

from engine.core.exhibits import Table, Token
from engine.core.options import whole
from engine.core.sampling import likeliest
from engine.core.tree import DraftTree
from engine.methods.shared.levels import SOURCE, LevelDrafter


class MultiChainDrafter(LevelDrafter):
    """Draws chains independently of each other. A node has one draw for each chain that passes through it; if several
    chains draw the same token, each of these draws is judged. The number of draws at a node is fixed before its first
    draw.

    In greedy decoding independent chains would all be the same, so chain i begins with the draft model's i-th likeliest
    token.
    """

    key = "multi_chain"
    shape = "paths"
    title = "Several chains"
    summary = "A draft model writes several chains, each on its own; equal beginnings are merged."
    default_verifier = "spectr"
    options = (
        whole("chains", 3, 1, 16).meaning("Chains drafted in a step."),
        whole("length", 4, 1, 16).meaning("Tokens of each chain."),
    )
    trial = {"chains": 2, "length": 2}

    @property
    def levels(self) -> int:
        return self.settings["length"]

    def grow(self, tree, parents, q, level):
        if level == 0:
            self._ends = [parents[0]] * self.settings["chains"]
            self._paths: list[list[int]] = [[] for _ in self._ends]
        rows, laws = [parents.index(end) for end in self._ends], q.unbind()
        for chain, token in enumerate(self._tokens(q, rows, level)):
            if token is None:
                continue
            kind = "one_hot" if self.sampling.greedy else "iid"
            end = tree.draw(self._ends[chain], token, kind, laws[rows[chain]], SOURCE)
            self._ends[chain] = end
            self._paths[chain].append(end)
        self._drop_ended(level)
        return list(dict.fromkeys(self._ends))

    def _tokens(self, q, rows: Sequence[int], level: int) -> list[int]:
        """Return the next token of each chain. None for a chain that gets no token, because there are more chains than
        tokens in the vocabulary."""
        if not self.sampling.greedy:
            return self.chance.pick(q[rows], self.chance.uniforms(len(rows))).tolist()
        if level:
            return likeliest(q[rows])
        best = q[0].topk(min(len(rows), q.shape[-1])).indices.tolist()
        return [*best, *[None] * (len(rows) - len(best))]

    def _drop_ended(self, level: int) -> None:
        """Drop the chains that got no token because there are more chains than tokens in the vocabulary."""
        alive = [chain for chain, path in enumerate(self._paths) if len(path) > level]
        self._ends = [self._ends[chain] for chain in alive]
        self._paths = [self._paths[chain] for chain in alive]

    def show(self, tree: DraftTree) -> None:
        longest = max(map(len, self._paths), default=0)
        rows = [
            [chain, *(Token(tree.tokens[node]) for node in path)]
            for chain, path in enumerate(self._paths, start=1)
        ]
        columns = ("chain", *(f"token {depth}" for depth in range(1, longest + 1)))
        note = "Chains that begin alike share a branch of the tree; each still counts as a draw."
        tree.exhibits.append(Table("The chains of this step", columns, rows, note=note))
