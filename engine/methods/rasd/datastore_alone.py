"""RASD's retrieval without its draft model: the most frequent continuations in the datastore.

This is REST (He et al., REST: Retrieval-Based Speculative Decoding, NAACL 2024). It serves only for measurements, in
which the bench compares RASD with each of its two sources of drafts.
"""

from engine.core.drafter import Drafter
from engine.core.options import whole
from engine.core.tree import ROOT, DraftTree
from engine.methods.rasd.retrieved_tree import frequent


class DatastoreAlone(Drafter):
    key = "datastore"
    title = "Datastore alone"
    family = "retrieval"
    summary = "Copies the most frequent continuations of the text's end from a datastore."
    draw_kinds = ("one_hot",)
    needs = {"datastore": "datastore"}
    options = (
        whole("retrieved", 12, 1, 64).meaning("Most nodes."),
        whole("length", 10, 1, 64).meaning("Longest branch."),
        whole("longest_match", 16, 1, 64).meaning("Most tokens looked up."),
        whole("shortest_match", 2, 1, 64).meaning("Fewest tokens that match."),
    )

    @classmethod
    def build(cls, settings, models):
        drafter = cls(settings)
        drafter.index = models.part("datastore")
        return drafter

    def propose(self, context, max_depth):
        most, least = self.settings["longest_match"], self.settings["shortest_match"]
        tree, match = DraftTree(), self.index.longest(context[-most:], most, least)
        if match is None:
            return tree
        length = min(self.settings["length"], max_depth)
        retrieved = frequent(self.index.continuations(match, length), self.settings["retrieved"])
        node_of = {ROOT: ROOT}
        for node, (token, parent) in enumerate(
            zip(retrieved.tokens, retrieved.parents, strict=True)
        ):
            node_of[node] = tree.draw(node_of[parent], token, source="datastore")
        return tree
