"""The target drafts for itself on a part of its own keys and values, and checks the draft with all of them.

Chen et al., MagicDec: Breaking the Latency-Throughput Tradeoff for Long Context Generation with Speculative Decoding (ICLR
2025). With long texts, or many, a pass spends its time on keys and values and not on weights. So a draft pass of the same
weights that reads a part of them costs less, and is almost as good. Methods that leave out keys and values change a model's
answer; here they only say what a draft reads, so under an exact rule they change nothing but how many tokens are kept.

Which part is read is for a selector to say, a file each beside this one. On one text of a small model the weights take
nearly all of the time, so nothing is gained.
"""

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from engine.core.drafter import Drafter
from engine.core.options import choice, whole
from engine.core.sampling import Sampling, display_distribution, likeliest
from engine.core.tree import ROOT, DraftTree
from engine.errors import UserError
from engine.methods.own_cache.gear import Gear
from engine.methods.own_cache.longheads import LongHeads
from engine.methods.own_cache.lserve import LServe
from engine.methods.own_cache.own_cache_shown import exhibits
from engine.methods.own_cache.quantspec import QuantSpec
from engine.methods.own_cache.selector import Past, Queries
from engine.methods.own_cache.sentencekv import SentenceKV
from engine.methods.own_cache.snapkv import SnapKV
from engine.methods.own_cache.speckv import AHEAD, SpecKV
from engine.methods.own_cache.streaming import Streaming
from engine.methods.shared.draft_chain import DraftChain
from engine.model.cache_view import CacheView, check_views

SELECTORS = {
    one.key: one
    for one in (Streaming, SnapKV, SentenceKV, SpecKV, LServe, QuantSpec, Gear, LongHeads)
}
PART, FEWEST = 8, 16  # the budget that is chosen: this part of the prompt, and no fewer columns


class OwnCacheDrafter(Drafter):
    key = "own_cache"
    title = "A part of its own cache, MagicDec"
    family, shape = "self", "chain"
    summary = "The target drafts for itself on a part of its keys and values."
    draw_kinds = ("iid",)
    uses_target = True
    options = (
        whole("length", 4, 1, 32, "Length").meaning("Tokens drafted in a step."),
        choice("selector", "snapkv", tuple(SELECTORS), "Selector").meaning(
            "What a draft pass reads: the text's ends (streaming), what the prompt's end looks at (snapkv) or what a draft "
            "model's answer looks at (speckv), the sentences or pages that the last tokens ask for (sentencekv, lserve), "
            "all of it in four bits or two (quantspec, gear), or chunks moved to the end (longheads)."
        ),
        whole("budget", 0, 0, 1 << 20, "Columns").meaning(
            "Columns of each layer that a draft pass reads of the prompt (0: an eighth of them)."
        ),
        whole("sinks", 4, 0, 64, "First tokens", advanced=True).meaning(
            "First tokens of the text that are read in any case."
        ),
    )
    trial = {"length": 2, "selector": "streaming", "budget": 3, "sinks": 1}

    def __init__(self, settings, target, draft: DraftChain | None) -> None:
        """draft: writes the continuation for the selector that wants one."""
        super().__init__(settings)
        self.target, self._draft = target, draft

    @classmethod
    def may_use(cls):
        return DraftChain.needs

    @classmethod
    def build(cls, settings, models):
        check_views(models.target)
        budget, sinks = settings["budget"], settings["sinks"]
        if 0 < budget <= sinks:
            raise UserError(
                f"A budget of {budget} columns has no room for the first {sinks} tokens and a recent one."
            )
        if settings["selector"] != SpecKV.key:
            return cls(settings, models.target, None)
        if not DraftChain.needs.keys() <= models.parts.keys():
            raise UserError(
                "The selector speckv needs a draft model, whose answer says what to read."
            )
        options = {"length": AHEAD, "stop_below": 0.0}
        return cls(settings, models.target, DraftChain.build(options, models))

    def begin(self, start):
        super().begin(start)
        sinks = self.settings["sinks"]
        budget = self.settings["budget"] or max(len(start.prompt) // PART, FEWEST, sinks + 1)
        tokenizer = self.target.tokenizer
        piece = None if tokenizer is None else lambda token: tokenizer.decode([token])
        self._past = Past(start.target, start.prompt, piece, self._continuation)
        self._selector = SELECTORS[self.settings["selector"]](budget, sinks)
        self._queries, self._passes, self._shown = Queries(), 0, []
        self._view, self._rows, self._forced = None, [], 0
        if start.target.length:
            self._selector.begin(self._past)
            self._view = CacheView(start.target, self._queries)

    def _continuation(self, count: int) -> list[int]:
        most = self._draft.max_context - count
        if len(self.start.prompt) > most:
            raise UserError(
                f"The draft model reads {most} tokens at most, and so cannot answer this prompt for speckv."
            )
        self._draft.begin(replace(self.start, sampling=Sampling(), constraint=None))
        return self._draft.propose(self.start.prompt, count).tokens

    def passes(self):
        return {"own cache": self._passes} | ({} if self._draft is None else self._draft.passes())

    def propose(self, context, max_depth):
        tree = DraftTree()
        if self._view is None:  # the text began with one token, so nothing was read when it began
            return tree
        self.turn_to(context)
        rows = context[self._past.session.length :]
        self._forced = len(rows) - 1
        self._chain(tree, rows, min(self.settings["length"], max_depth))
        tree.exhibits += self._shown
        return tree

    @property
    def share(self) -> float:
        """The bytes that a draft pass reads of the keys and values, as a share of all."""
        return self._selector.share(self._past.session.length)

    def turn_to(self, context: Sequence[int]) -> None:
        """Before a draft: read what the selector says of the text up to the root, context[-1]."""
        self._past.tokens = context
        changes = self._selector.changes(self._past)
        self._view.take(self._selector.chosen if changes else None)
        if changes or not self._shown:
            self._shown = exhibits(self._selector, self._past, self._view.reduced)
        self._rows = []

    def read(self, tokens: Sequence[int]) -> Tensor:
        """One draft pass; returns logits [R, V]."""
        self._passes += 1
        self._rows += tokens
        return self._view.feed(tokens)

    def learn(self, count: int) -> None:
        """Of the rows read since ``turn_to``, so many stayed in the text."""
        queries, tokens, self._rows = self._queries.taken(), self._rows[:count], []
        if self._selector.follows and tokens:
            kept = {layer: rows[:, : len(tokens)] for layer, rows in queries.items()}
            self._selector.learn(kept, tokens)

    def _chain(self, tree: DraftTree, rows: Sequence[int], length: int) -> None:
        parent = ROOT
        while len(tree) < length:
            q = display_distribution(self.read(rows)[-1:], self.sampling)[0].cpu()
            if self.sampling.greedy:
                kind, token = "one_hot", likeliest(q)
            else:
                kind, token = "iid", self.chance.draw(q)
            parent, rows = tree.draw(parent, token, kind, q, "own cache"), [token]

    def observe(self, kept):
        if self._view is not None:
            self.learn(1 + self._forced + len(kept.path))
