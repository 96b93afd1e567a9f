"""Search for the draft in a tri-gram matrix that learns from every pass of the target.

ADED (Liu et al., Adaptive Draft-Verification for Efficient Large Language Model Decoding, AAAI 2025): a tri-gram matrix
stands in for the target. For each pair of tokens it holds the likeliest next tokens and their probabilities. After
every pass, the target's probabilities at each row of the pass are blended into the matrix, at the pair of tokens that
ends in that row, whether the row's token was accepted or not. A Monte-Carlo tree search on the matrix makes the draft:
it balances likely tokens against seldom-tried ones, and the most visited nodes are drafted.

The paper fills its first matrix with counts from a corpus. Here the matrix begins with counts from the prompt, and each
visitor's matrix is kept from text to text.
"""

from engine.core.drafter import tree_size
from engine.core.exhibits import Gauge, Table, Token
from engine.core.options import number, whole
from engine.core.tree import ROOT, DraftTree
from engine.methods.aded.draft_search import DraftSearch
from engine.methods.aded.trigram_matrix import TrigramMatrix
from engine.methods.shared.remembering import RememberingDrafter

SHOWN = 12  # nodes of the search tree that the table shows


class AdaptiveDraftDrafter(RememberingDrafter):
    key = "aded"
    title = "Adaptive draft-verification"
    family = "retrieval"
    summary = "Searches for a draft in a tri-gram matrix that every pass of the target updates."
    options = (
        tree_size(64),
        whole("simulations", 48, 1, 512, "Simulations").meaning(
            "Walks of the search in each step (150 in the paper)."
        ),
        number("explore", 1.0, 0.0, 8.0, "Exploration").meaning(
            "How strongly the search prefers nodes that it has seldom visited."
        ),
        whole("depth", 8, 1, 16, "Depth", advanced=True).meaning("Longest branch."),
        whole("successors", 12, 1, 16, "Candidates", advanced=True).meaning(
            "Candidates kept for each pair of tokens."
        ),
        number("share", 0.5, 0.05, 1.0, "Weight of the newest pass", advanced=True).meaning(
            "Weight of the target's newest pass when a pair's row is updated."
        ),
    )
    size_option, usual_size = "budget", 12
    trial = {"budget": 3, "simulations": 8, "depth": 2, "successors": 2}

    def begin(self, start):
        super().begin(start)
        width = self.settings["successors"]
        key = (self.key, self._target, self._vocabulary, width)
        self.index = start.memory.store(key, lambda: TrigramMatrix(self._vocabulary, width))
        self.index.count(start.prompt)
        self.start.memory.trim()
        self._last: tuple[int, int] | None = None

    def propose(self, context, max_depth):
        tree = DraftTree()
        self._last = tuple(context[-2:]) if len(context) > 1 else None
        if self._last is None:
            return tree
        depth = min(self.settings["depth"], max_depth)
        search = DraftSearch(self.index.row, self._last, depth, self.settings["explore"])
        search.run(self.settings["simulations"])
        chosen = search.best(self.settings["budget"])
        node_of = {id(search.root): ROOT}
        for place in chosen:
            parent = node_of[id(place.parent)]
            node_of[id(place)] = tree.draw(parent, place.token, source="search", q=place.chance)
        if search.visited:
            tree.exhibits.append(_visits(search, len(chosen)))
        tree.exhibits.append(self._filled())
        return tree

    def observe(self, kept):
        """Blend the target's distributions into the matrix, at each pair of tokens after which the pass has computed
        one."""
        last, self._last = self._last, None  # the next step might not propose anything
        if last is None or kept.logits is None:
            return
        tokens, parents = kept.tree.tokens, kept.tree.parents
        above = [kept.root if parent == ROOT else tokens[parent] for parent in parents]
        pairs = [(last[0], kept.root), *zip(above, tokens, strict=True)]
        self.index.write(pairs, kept.logits, self.settings["share"])
        self.start.memory.trim()

    def _filled(self) -> Gauge:
        matrix = self.index
        title = "Pairs in the tri-gram matrix"
        note = f"The matrix takes {matrix.nbytes / 1000:,.0f} kB; when it is full, the oldest pair gives way."
        return Gauge(title, matrix.filled, maximum=matrix.rows, unit="pairs", note=note)


def _visits(search: DraftSearch, drafted: int) -> Table:
    rows = [
        [
            Token(place.token),
            "the text" if place.depth == 1 else Token(place.parent.token),
            place.depth,
            place.visits,
            round(place.mean, 3),
            round(place.chance, 3),
            "yes" if rank < drafted else "no",
        ]
        for rank, place in enumerate(search.best(SHOWN))
    ]
    note = (
        f"{search.root.visits} simulations visited {len(search.visited)} nodes; "
        f"the {drafted} most visited are drafted."
    )
    columns = ["Token", "After", "Depth", "Visits", "Mean value", "Probability", "Drafted"]
    return Table("Search tree: the most visited nodes", columns, rows, note=note)
