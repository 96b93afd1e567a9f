"""Drafts the most frequent continuations of the text's last tokens, copied from this text and from earlier texts.

SuffixDecoding (Oliaro et al., SuffixDecoding: Extreme Speculative Decoding for Emerging AI Applications, NeurIPS 2025).
One index holds the current text (prompt and output), another the earlier texts. The end of the text is looked up in
both. A tree of continuations is grown for each match, always at the node with the highest estimated chance. Each token
has a share: how often it followed the tokens before it, among all tokens that did. The chance of a node is the product
of these shares along its path. The tree of a match of p tokens has at most ``offset`` + ``factor`` * p nodes. The tree
with the largest sum of chances is drafted. Both indices are suffix automata (as in SAM Decoding, Hu et al., 2024)
instead of the paper's suffix trees; they hold the same runs and counts in less memory.
"""

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.core.drafter import tree_size
from engine.core.exhibits import Table, Token
from engine.core.memory import Store
from engine.core.options import number, switch, whole
from engine.core.tree import ROOT, DraftTree
from engine.methods.shared.remembering import RememberingDrafter
from engine.methods.shared.suffix_automaton import START, Match, SuffixAutomaton

MOST_BYTES = 4_000_000
"""The most bytes for a visitor's earlier texts. When they take more, the older half of the texts is deleted."""

SHOWN = 8  # the most continuations in the table


EARLIER_TEXTS = switch("earlier_texts", True, "Earlier texts").meaning(
    "Look into texts written before, too."
)


@dataclass
class Branches:
    """A tree of continuations of a match, taken from one index. chances: for each node, the chance that the text
    continues to this node.

    source: the name of the index. counts: for each node two numbers: how often its token followed the tokens before it,
    and how often any token did.
    """

    source: str
    match: Match
    tokens: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    chances: list[float] = field(default_factory=list)
    counts: list[tuple[int, int]] = field(default_factory=list)

    @property
    def score(self) -> float:
        """The expected number of accepted tokens."""
        return sum(self.chances)

    def first(self, count: int) -> "Branches":
        """Return a copy with the ``count`` likeliest nodes only."""
        lists = (self.tokens, self.parents, self.chances, self.counts)
        return Branches(self.source, self.match, *(values[:count] for values in lists))


class SuffixCopies(RememberingDrafter):
    key = "suffix"
    family = "retrieval"
    options = (
        tree_size(64),
        number("factor", 2.0, 0.0, 8.0, "Trust").meaning("Nodes for each token that matches."),
        whole("offset", 6, 0, 32, "Trust at once", advanced=True).meaning(
            "Nodes for a match of any length, beside those for its tokens."
        ),
        number("least_chance", 0.25, 0.0, 1.0, "Least chance", advanced=True).meaning(
            "No node that is less likely than this to be reached."
        ),
        EARLIER_TEXTS,
    )
    size_option, usual_size = "budget", 16
    trial = {"budget": 3}

    def begin(self, start):
        super().begin(start)
        self.index, self._read = SuffixAutomaton(), 0
        self._prompt = len(start.prompt)
        self._written: list[int] = []  # the tokens behind the prompt, forced tokens included
        self._earlier = start.memory.store((self.key, self._target), EarlierTexts)
        self._before = (
            self._earlier.automaton
        )  # the store may start a new one when another text ends
        self._place = Match(START, 0)

    def propose(self, context, max_depth):
        best = self.best(context, max_depth)
        return DraftTree() if best is None else drafted(best)

    def best(self, context: Sequence[int], max_depth: int) -> Branches | None:
        """Return the tree of continuations with the highest score; None if no suffix of the context matches."""
        self._follow(context)
        self._written = list(context[self._prompt :])
        return max(self._trees(max_depth), key=lambda tree: tree.score, default=None)

    def observe(self, kept):
        if kept.position == self._prompt + len(self._written):  # else forced tokens were not seen
            self._written += kept.tokens

    def close(self):
        """Add the output of the ended text to the earlier texts, so that later texts may copy it."""
        if self._written:
            self._earlier.add(self._written)
            self.start.memory.trim()
            self._written = []

    def _follow(self, context: Sequence[int]) -> None:
        """Add the new tokens of the text to the index of this text, and update the match in the earlier texts."""
        grown = context[self._read :]
        self._read = len(context)
        self.index.read(grown)
        if self.settings["earlier_texts"]:
            for token in grown:
                self._place = self._before.follow(self._place, token)

    def _trees(self, max_depth: int) -> list[Branches]:
        """Return one tree for each match, the longest matches first. Matches whose tree cannot have a higher score than
        an earlier tree are left out, and so are empty trees."""
        trees: list[Branches] = []
        indices = (
            ("this text", self.index, self.index.repeated()),
            ("earlier texts", self._before, self._place),
        )
        best = 0.0
        for source, index, match in indices:
            for shorter in index.shorter(match):
                room = self._room(shorter)
                if room <= best:  # no tree has more than one expected token per node
                    break
                tree = self._grown(index, Branches(source, shorter), room, max_depth)
                trees.append(tree)
                best = max(best, tree.score)
        return [tree for tree in trees if tree.tokens]

    def _room(self, match: Match) -> int:
        """Return the largest number of nodes for the tree of this match."""
        trusted = self.settings["offset"] + self.settings["factor"] * match.length
        return min(self.settings["budget"], int(trusted))

    def _grown(self, index: SuffixAutomaton, tree: Branches, room: int, max_depth: int) -> Branches:
        """Add the likeliest continuations of the match to ``tree``, at most ``room`` nodes, and return it."""
        heap: list[tuple[float, int, int, int, int, int, int, int]] = []
        number = 0

        def offer(state: int, parent: int, depth: int, chance: float) -> None:
            nonlocal number
            after = index.followers(state)
            total = sum(index.count[child] for child in after.values())
            likeliest = heapq.nlargest(room, after.items(), key=lambda item: index.count[item[1]])
            for token, child in likeliest:
                count = index.count[child]
                if chance * count / total < self.settings["least_chance"]:
                    break
                number += 1  # of equal chances, the node offered first wins
                entry = (-chance * count / total, number, token, child, parent, depth, count, total)
                heapq.heappush(heap, entry)

        offer(tree.match.state, ROOT, 1, 1.0)
        while heap and len(tree.tokens) < room:
            chance, _, token, state, parent, depth, count, total = heapq.heappop(heap)
            tree.tokens.append(token)
            tree.parents.append(parent)
            tree.chances.append(-chance)
            tree.counts.append((count, total))
            if depth < max_depth:
                offer(state, len(tree.tokens) - 1, depth + 1, -chance)
        return tree


def drafted(branches: Branches) -> DraftTree:
    """Return the draft tree made of these continuations; its exhibit is the table of continuations."""
    tree, nodes = DraftTree(), {ROOT: ROOT}
    for place, token in enumerate(branches.tokens):
        followed, of = branches.counts[place]
        parent = nodes[branches.parents[place]]
        nodes[place] = tree.draw(parent, token, source=branches.source, q=followed / of)
    tree.exhibits.append(_table(branches))
    return tree


def _table(tree: Branches) -> Table:
    rows = [
        [Token(tree.tokens[place]), *tree.counts[place], round(tree.chances[place], 3)]
        for place in range(min(len(tree.tokens), SHOWN))
    ]
    length = tree.match.length
    matched = (
        "The last token also stands" if length == 1 else f"The last {length} tokens also stand"
    )
    note = (
        f"{matched} in {tree.source}; of {len(tree.tokens)} drafted tokens "
        f"{tree.score:.1f} are expected to be kept."
    )
    columns = ["Token", "Followed", "Of", "Chance of the path"]
    return Table("Continuations of the match", columns, rows, note=note)


class EarlierTexts(Store):
    """The outputs of a visitor's earlier texts, in one index."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes = most_bytes
        self.automaton = SuffixAutomaton()
        self._texts: deque[list[int]] = deque()

    @property
    def nbytes(self) -> int:
        return self.automaton.nbytes + sum(8 * len(text) for text in tuple(self._texts))

    def add(self, text: list[int]) -> None:
        """Add a text. If the store then takes too many bytes, delete the older half of the texts."""
        self._texts.append(list(text))
        self._index(text)
        while self.nbytes > self.most_bytes and self._texts:
            for _ in range(max(1, len(self._texts) // 2)):
                self._texts.popleft()
            self.automaton = SuffixAutomaton()
            for earlier in self._texts:
                self._index(earlier)

    def _index(self, text: Sequence[int]) -> None:
        self.automaton.separate()
        self.automaton.read(text)
