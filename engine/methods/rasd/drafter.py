"""A draft model's tree, merged with continuations from a text that the user supplied.

RASD (Quan et al., Retrieval-Augmented Speculative Decoding, ACL 2025): the end of the text is looked up in the text
itself, as in prompt lookup, and in a datastore, as in REST (He et al., 2024). The continuations found there form a
second tree. The draft model's q prunes that tree, because a continuation that the draft model finds impossible is
hardly ever the target's. Then both trees are merged: common prefixes become one path, and the rest of a continuation
branches off where the two trees differ.

The draft model's own tree is DySpec's (``engine.methods.dyspec.drafter``). The draft model runs over the retrieved tree
in one pass. The retrieved nodes were not drawn from q, so they are judged one-hot, after the nodes that were drawn.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

from engine.core.drafter import Drafter
from engine.core.exhibits import Table, Token, Words
from engine.core.options import number, switch, whole
from engine.core.tree import ROOT, DraftTree
from engine.methods.rasd.datastore_alone import DatastoreAlone
from engine.methods.rasd.retrieved_tree import Retrieved, frequent
from engine.methods.shared.datastore_part import Datastore
from engine.methods.shared.grown_tree import GrownTree
from engine.methods.shared.ngram_index import NgramIndex

WIDER = 2
"""How many times as many retrieved nodes are weighed by the draft model's q as the option ``retrieved`` allows in the
draft."""

SHOWN = 10  # retrieved nodes that the table shows


@dataclass(frozen=True)
class Lookup:
    """The result of one lookup: the last ``matched`` tokens of the text occur ``times`` times in the source.
    continuations: the tokens after each occurrence. source: "this text" or "datastore"."""

    source: str
    matched: int
    times: int
    continuations: Sequence[Sequence[int]]

    @property
    def place(self) -> str:
        return self.source.removeprefix("this ")


class RetrievalAugmentedDrafter(Drafter):
    key = "rasd"
    title = "Draft model and datastore, RASD"
    family = "retrieval"
    summary = "Merges a draft model's tree with what follows the same words in a text of yours."
    draw_kinds = (*GrownTree.draw_kinds, "one_hot")
    needs = {"draft": "draft", "datastore": "datastore"}
    mixed_siblings = True
    sources = (GrownTree, DatastoreAlone)
    options = (
        whole("budget", 0, 0, 32, "Nodes").meaning(
            "Most nodes of the draft model's own tree (0: the fastest size for this machine, measured)."
        ),
        whole("retrieved", 12, 1, 16, "Retrieved nodes").meaning(
            "Most nodes retrieved from each source: from the text itself, and from the datastore."
        ),
        number("least_q", 0.02, 0.0, 1.0, "Least q").meaning(
            "A retrieved path is kept while the draft model's q of the whole path is at least this."
        ),
        whole("length", 10, 1, 32, "Length").meaning("Longest continuation that is retrieved."),
        switch("this_text", True, "This text").meaning("Look into the text itself, too."),
        whole("longest_match", 16, 1, 64, "Longest match", advanced=True).meaning(
            "Most tokens of the text's end that are looked up."
        ),
        whole("shortest_match", 2, 1, 16, "Shortest match", advanced=True).meaning(
            "Fewest tokens that count as a match."
        ),
    )
    size_option, usual_size = "budget", 8
    trial = {"budget": 2, "retrieved": 3, "length": 3, "shortest_match": 1}

    def __init__(self, settings, own: GrownTree, datastore: Datastore) -> None:
        """own: the drafter that grows the draft model's tree."""
        super().__init__(settings)
        self._own, self.index = own, datastore
        self.max_context = own.max_context

    @classmethod
    def build(cls, settings, models):
        defaults = {option.name: option.default for option in GrownTree.options}
        size = settings["budget"] or cls.usual_size
        own = GrownTree.build({**defaults, "budget": size}, models)
        return cls(settings, own, models.part("datastore"))

    def begin(self, start):
        super().begin(start)
        self._own.begin(start)
        shortest = min(self.settings["shortest_match"], self.settings["longest_match"])
        self._text = NgramIndex(shortest, self.settings["longest_match"])

    def propose(self, context, max_depth):
        tree = self._own.propose(context, max_depth)
        if not tree.children(ROOT):  # the constraint left the draft model no token: there is no q
            return tree
        for lookup in self._lookups(context, min(self.settings["length"], max_depth)):
            self._add(tree, lookup, context)
        return tree

    def observe(self, kept):
        self._own.observe(kept)

    def passes(self):
        return self._own.passes()

    def _lookups(self, context: Sequence[int], length: int) -> Iterator[Lookup]:
        """Look up the end of the text in the text itself and in the datastore; yield a ``Lookup`` for each of the two
        that has a match."""
        most, least = self.settings["longest_match"], self.settings["shortest_match"]
        if self.settings["this_text"]:
            self._text.read(context)
            match = self._text.latest(context)
            if match is not None:
                start, matched = match
                yield Lookup("this text", matched, 1, [context[start : start + length]])
        matches = self.index.longest(context[-most:], most, least)
        if matches is not None:
            followers = list(self.index.continuations(matches, length))
            yield Lookup("datastore", matches.length, matches.last - matches.first, followers)

    def _add(self, tree: DraftTree, lookup: Lookup, context: Sequence[int]) -> None:
        """Compute q of the retrieved continuations' nodes with the draft model, and graft the likely ones onto the
        tree."""
        retrieved = frequent(lookup.continuations, WIDER * self.settings["retrieved"])
        places, own = self._read(tree, retrieved), len(tree)
        stay = retrieved.pruned(self.settings["least_q"], self.settings["retrieved"])
        self._merge(tree, retrieved, stay, places, lookup.source)
        in_both = {node for node in stay if places[node] < own}
        tree.exhibits += told(lookup, context, retrieved, stay, in_both)

    def _read(self, tree: DraftTree, retrieved: Retrieved) -> list[int]:
        """Run the draft model, in one pass, over those retrieved nodes that have children and were not in the tree
        already; then compute q of all retrieved nodes. Returns a number for each retrieved node: its number in the
        tree, or, for a node that is not in the tree, a number above all those."""
        places: list[int] = []
        for token, parent in zip(retrieved.tokens, retrieved.parents, strict=True):
            above = ROOT if parent == ROOT else places[parent]
            child = tree.child(above, token) if above < len(tree) else None
            places.append(len(tree) + len(places) if child is None else child)
        laws: dict[int, Tensor] = {}
        for node in (ROOT, *retrieved.inner):
            place = ROOT if node == ROOT else places[node]
            law = tree.shown_law(place) if place < len(tree) else None
            if law is not None:
                laws[node] = law
        unread = [node for node in retrieved.inner if node not in laws]
        if unread:
            tokens = [retrieved.tokens[node] for node in unread]
            above = [retrieved.parents[node] for node in unread]
            parents = [ROOT if parent == ROOT else places[parent] for parent in above]
            rows = self._own.reader.expand([places[node] for node in unread], tokens, parents)
            laws |= dict(zip(unread, rows, strict=True))
        retrieved.weigh(laws)
        return places

    def _merge(
        self,
        tree: DraftTree,
        retrieved: Retrieved,
        stay: Sequence[int],
        places: Sequence[int],
        source: str,
    ) -> None:
        """Graft the retrieved nodes in ``stay`` onto the tree. The nodes that are in the tree already keep their
        numbers. places: a number for each retrieved node, as ``_read`` returns them."""
        own = len(tree)
        merged = tree.graft(retrieved.branches(stay, source))
        for place in merged:
            if place < own:
                tree.sources[place] += f" and {source}"
        fresh = {places[node]: place for node, place in zip(stay, merged, strict=True)}
        self._own.reader.renumber({node: node for node in range(own)} | fresh)


def told(
    lookup: Lookup,
    context: Sequence[int],
    retrieved: Retrieved,
    stay: Sequence[int],
    in_both: set[int],
) -> list[Words | Table]:
    """Return what is shown of a lookup: the match, and for each retrieved node whether it was merged, is in both trees,
    or was pruned."""
    matched = [Token(token) for token in context[len(context) - lookup.matched :]]
    times = "once" if lookup.times == 1 else f"{lookup.times:,} times"
    often = "earlier" if lookup.source == "this text" else times
    line = ["The end of the text, ", *matched, f", occurs {often} in the {lookup.place}."]
    fates = {node: "in both trees" if node in in_both else "merged in" for node in stay}
    rows = [
        [
            Token(retrieved.tokens[node]),
            "the text" if parent == ROOT else Token(retrieved.tokens[parent]),
            retrieved.times[node],
            retrieved.q[node],
            fates.get(node, "pruned"),
        ]
        for node, parent in enumerate(retrieved.parents[:SHOWN])
    ]
    pruned = len(retrieved) - len(stay)
    note = (
        f"{len(retrieved)} nodes, read by the draft model in one pass; {len(in_both)} are in "
        f"both trees, {len(stay) - len(in_both)} merged in, {pruned} pruned by q."
    )
    columns = ["Token", "After", "Times", "q of the path", "Outcome"]
    return [
        Words(f"Match in the {lookup.place}", [line]),
        Table(f"Continuations in the {lookup.place}", columns, rows, note=note),
    ]
