"""DiffuSpec: the block is a lattice, and the draft is the path through it that reads best from left to right.

Li et al., "DiffuSpec: Unlocking Diffusion Language Models for Speculative Decoding" (2025); the search and the
adaptive length are in ``engine.methods.diffuspec.path_search``. The paper's causal proxy is a 3-gram model of a corpus; here the
corpus is a datastore, and the text so far is counted as well. The path is searched, not drawn, so it is judged one-hot
and is exact.
"""

from __future__ import annotations

from engine.core.exhibits import Choice, Gauge, Lattice
from engine.core.options import Option
from engine.core.tree import DraftTree
from engine.methods.diffuspec.causal_proxy import CausalProxy
from engine.methods.diffuspec.path_search import Column, DraftLength, Path, best_path, columns_of
from engine.methods.shared.block_drafter import DiffusionDrafter

SHOWN = 6  # candidates of a position in the lattice


class DiffuSpecDrafter(DiffusionDrafter):
    key = "diffuspec"
    title = "Path through a diffusion lattice, DiffuSpec"
    summary = (
        "Searches a diffusion drafter's block for the path that reads best from left to right."
    )
    needs = {"diffusion": "denoiser", "datastore": "datastore"}
    options = (
        Option("length", "int", 7, "Most tokens drafted in a step.", 1, 31, label="Longest draft"),
        Option(
            "shortest", "int", 3, "Fewest tokens drafted in a step.", 1, 31, label="Shortest draft"
        ),
        Option(
            "growth",
            "int",
            2,
            "Tokens by which drafts grow while all of them is kept.",
            0,
            16,
            label="Growth",
            advanced=True,
        ),
        Option("beam", "int", 3, "Paths that the search follows.", 1, 16, label="Beam"),
        Option(
            "diffusion_weight",
            "float",
            0.8,
            "Weight of the diffusion drafter in a path's score; the rest is that of n-grams.",
            0.0,
            1.0,
            label="Weight of diffusion",
        ),
        Option(
            "mass",
            "float",
            0.8,
            "Probability that the candidates of a position hold together.",
            0.0,
            1.0,
            label="Mass of candidates",
            advanced=True,
        ),
        Option(
            "candidates",
            "int",
            15,
            "Most candidates of a position.",
            1,
            64,
            label="Candidates",
            advanced=True,
        ),
        Option("order", "int", 3, "Tokens of an n-gram.", 1, 6, label="N-gram", advanced=True),
    )
    trial = {"length": 2, "shortest": 1, "growth": 1}

    def __init__(self, settings, drafter, target, corpus) -> None:
        super().__init__(settings, drafter, target)
        self._corpus = corpus

    @classmethod
    def build(cls, settings, models):
        return cls(settings, models.part("diffusion"), models.target, models.part("datastore"))

    @classmethod
    def kinds(cls, sampling):
        return frozenset({"one_hot"})

    def begin(self, start):
        super().begin(start)
        settings = self.settings
        longest = settings["length"]
        shortest = min(settings["shortest"], longest)
        self._next_length = DraftLength(shortest, longest, settings["growth"], recent=0.5)
        self._proxy = CausalProxy(settings["order"], self.target.vocab_size, self._corpus)
        self._ends = frozenset(self.target.end_tokens)

    def propose(self, context, max_depth):
        settings, wanted = self.settings, self._next_length.next()
        self._proxy.read(context)
        marginals = self._marginals(context, min(max_depth, wanted)).cpu()
        columns = columns_of(
            marginals, settings["mass"], settings["candidates"], sorted(self._ends)
        )
        before = context[-settings["order"] :]

        def causal(path, token):
            return self._proxy.log_p([*before, *path], token)

        weight, beam = settings["diffusion_weight"], settings["beam"]
        path = best_path(columns, causal, weight, beam, self._ends)
        tree = DraftTree()
        chances = [columns[place][row].p for place, row in enumerate(path.rows)]
        tree.chain(path.tokens, "path", q=chances)
        tree.exhibits += [lattice(columns, path), self._gauge(len(path.tokens))]
        self._drafted = len(path.tokens)
        return tree

    def observe(self, kept):
        super().observe(kept)
        if len(kept.tree):
            self._next_length.see(self._drafted, len(kept.path))

    def _gauge(self, drafted: int) -> Gauge:
        length = self._next_length
        kept = length.kept
        told = "Nothing is known of earlier drafts yet."
        if kept is not None:
            told = f"Lately {length.drafted:.1f} tokens were drafted in a step, and {kept:.1f} (the mark) kept."
        return Gauge(
            title="Length of the draft",
            note=told,
            value=drafted,
            minimum=0,
            maximum=length.longest,
            mark=kept,
            unit="tokens",
        )


def lattice(columns: list[Column], path: Path) -> Lattice:
    """The positions on the path, each with its few likeliest candidates and the chosen one."""
    shown, rows = [], []
    for column, row in zip(columns, path.rows, strict=False):
        few: list[Choice] = column[:SHOWN]
        if row >= len(few):
            few = [*few[:-1], column[row]]
            row = len(few) - 1
        shown.append(few)
        rows.append(row)
    likeliest = sum(row == 0 for row in path.rows)
    return Lattice(
        title="Lattice and path",
        note=f"At {likeliest} of {len(path.rows)} positions the path takes the likeliest candidate.",
        columns=shown,
        path=rows,
    )
