"""DiffuSpec: the block is a lattice of candidates, and the draft is the path through it that a small left-to-right
model finds likeliest.

Li et al., "DiffuSpec: Unlocking Diffusion Language Models for Speculative Decoding" (2025); the search and the adaptive
length are in ``engine.methods.diffuspec.path_search``. The paper's causal proxy is a 3-gram model of a corpus. Here the
corpus is a datastore, and n-grams of the text so far are counted as well. The path is found by search and not drawn, so
it is judged one-hot and is exact.
"""

from engine.core.exhibits import Choice, Gauge, Lattice
from engine.core.options import number, whole
from engine.core.tree import DraftTree
from engine.methods.diffuspec.causal_proxy import CausalProxy
from engine.methods.diffuspec.path_search import Column, DraftLength, Path, best_path, columns_of
from engine.methods.shared.block_drafter import DiffusionDrafter

SHOWN = 6  # candidates of a position that the exhibit shows


class DiffuSpecDrafter(DiffusionDrafter):
    key = "diffuspec"
    title = "Path through a diffusion lattice, DiffuSpec"
    summary = (
        "Searches a diffusion drafter's block for the path that reads best from left to right."
    )
    draw_kinds = ("one_hot",)
    needs = {"diffusion": "denoiser", "datastore": "datastore"}
    options = (
        whole("length", 7, 1, 31, "Longest draft").meaning("Most tokens drafted in a step."),
        whole("shortest", 3, 1, 31, "Shortest draft").meaning("Fewest tokens drafted in a step."),
        whole("growth", 2, 0, 16, "Growth", advanced=True).meaning(
            "Tokens by which drafts grow while all of them is kept."
        ),
        whole("beam", 3, 1, 16, "Beam").meaning("Paths that the search follows."),
        number("diffusion_weight", 0.8, 0.0, 1.0, "Weight of diffusion").meaning(
            "Weight of the diffusion drafter in a path's score; the rest is that of n-grams."
        ),
        number("mass", 0.8, 0.0, 1.0, "Mass of candidates", advanced=True).meaning(
            "Probability that the candidates of a position hold together."
        ),
        whole("candidates", 15, 1, 64, "Candidates", advanced=True).meaning(
            "Most candidates of a position."
        ),
        whole("order", 3, 1, 6, "N-gram", advanced=True).meaning("Tokens of an n-gram."),
    )
    trial = {"length": 2, "shortest": 1, "growth": 1}

    def __init__(self, settings, drafter, target, corpus) -> None:
        super().__init__(settings, drafter, target)
        self._corpus = corpus

    @classmethod
    def build(cls, settings, models):
        return cls(settings, models.part("diffusion"), models.target, models.part("datastore"))

    def begin(self, start):
        super().begin(start)
        settings = self.settings
        longest = settings["length"]
        shortest = min(settings["shortest"], longest)
        self._next_length = DraftLength(shortest, longest, settings["growth"], recent=0.5)
        self._proxy = CausalProxy(settings["order"], self.target.vocab_size, self._corpus)
        self._ends = frozenset(self.target.end_tokens)

    def propose(self, context, max_depth):
        settings, length = self.settings, self._next_length.next()
        self._proxy.read(context)
        marginals = self._marginals(context, min(max_depth, length)).cpu()
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
        note = "Nothing is known of earlier drafts yet."
        if kept is not None:
            note = f"Lately {length.drafted:.1f} tokens were drafted in a step, and {kept:.1f} (the mark) kept."
        title = "Length of the draft"
        return Gauge(
            title, drafted, minimum=0, maximum=length.longest, mark=kept, unit="tokens", note=note
        )


def lattice(columns: list[Column], path: Path) -> Lattice:
    """Return a picture of the positions along the path, each with its few likeliest candidates and the chosen one."""
    shown, rows = [], []
    for column, row in zip(columns, path.rows, strict=False):
        few: list[Choice] = column[:SHOWN]
        if row >= len(few):
            few = [*few[:-1], column[row]]
            row = len(few) - 1
        shown.append(few)
        rows.append(row)
    likeliest = sum(row == 0 for row in path.rows)
    note = f"At {likeliest} of {len(path.rows)} positions the path takes the likeliest candidate."
    return Lattice("Lattice and path", shown, rows, note=note)
