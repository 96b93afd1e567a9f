"""Copy the tokens that followed the last occurrence of the text's final tokens.

Prompt lookup decoding (Saxena, 2023): the longest n-gram that ends the context is looked up earlier in the context, and
the tokens that follow this earlier occurrence are the draft. No model and no training are needed.
"""

from engine.core.drafter import Drafter
from engine.core.exhibits import Token, Words
from engine.core.options import whole
from engine.core.tree import DraftTree
from engine.methods.shared.ngram_index import NgramIndex


class PromptLookupDrafter(Drafter):
    key = "prompt_lookup"
    title = "Prompt lookup"
    family, shape = "retrieval", "chain"
    summary = "Copies what followed the longest matching run of tokens earlier in the text."
    draw_kinds = ("one_hot",)
    options = (
        # 12 and the root are 13 rows, a size for which passes on a CPU have a graph (engine.fast.cpu.fixed)
        whole("length", 12, 1, 64).meaning("Tokens copied in each step."),
        whole("max_ngram", 5, 1, 16).meaning("Longest run of tokens to look for."),
        whole("min_ngram", 1, 1, 16, advanced=True).meaning("Shortest run that counts as a match."),
    )

    trial = {"length": 2}

    def begin(self, start):
        super().begin(start)
        shortest = min(self.settings["min_ngram"], self.settings["max_ngram"])
        self.index = NgramIndex(shortest, self.settings["max_ngram"])

    def propose(self, context, max_depth):
        tree = DraftTree()
        self.index.read(context)
        match = self.index.latest(context)
        if match is None:
            return tree
        start, length = match
        end = start + min(self.settings["length"], max_depth)
        tree.chain(context[start:end], f"context {start}")
        matched = [Token(token) for token in context[start - length : start]]
        line = ["The last tokens ", *matched, f" also stand before token {start} of the text."]
        tree.exhibits.append(Words("Match", [line]))
        return tree
