"""Base class of drafters that run the target itself over a part of its KV cache.

An object called the selector chooses this part. Each kind of selector has a module of its own in this package.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from torch import Tensor

from engine.core.drafter import Drafter
from engine.core.finite import refuse_nan
from engine.core.options import choice, whole
from engine.core.sampling import Sampling
from engine.errors import UserError
from engine.methods.shared.draft_chain import DraftChain
from engine.methods.shared.gear import Gear
from engine.methods.shared.longheads import LongHeads
from engine.methods.shared.lserve import LServe
from engine.methods.shared.part_of_cache_shown import exhibits
from engine.methods.shared.quantspec import QuantSpec
from engine.methods.shared.selector import Past, Queries
from engine.methods.shared.sentencekv import SentenceKV
from engine.methods.shared.snapkv import SnapKV
from engine.methods.shared.speckv import AHEAD, SpecKV
from engine.methods.shared.specpc import SpecKVPC, SpecPC
from engine.methods.shared.streaming import Streaming
from engine.model.cache_view import CacheView, check_views
from engine.model.session import Session

_ALL = (
    Streaming, SnapKV, SentenceKV, SpecKV, SpecPC, SpecKVPC, LServe, QuantSpec, Gear, LongHeads
)  # fmt: skip
SELECTORS = {one.key: one for one in _ALL}
PART, FEWEST = 8, 16  # the default budget: 1 / PART of the prompt, but at least FEWEST columns


def part_options(reader: str) -> tuple:
    """Return the options of a drafter of this kind. reader: what the page calls the model that runs over a part of the
    cache."""
    return (
        choice("selector", "snapkv", tuple(SELECTORS), "Selector").meaning(
            f"What {reader} reads: the text's ends (streaming), what the prompt's end looks at (snapkv) or what a draft "
            "model's answer looks at (speckv), what the draft model looks at (specpc) or both (speckv_pc), the sentences or pages that the last tokens ask for (sentencekv, lserve), "
            "all of it in four bits or two (quantspec, gear), or chunks moved to the end (longheads)."
        ),
        whole("budget", 0, 0, 1 << 20, "Columns").meaning(
            f"Columns of each layer that {reader} reads of the prompt (0: an eighth of them)."
        ),
        whole("sinks", 4, 0, 64, "First tokens", advanced=True).meaning(
            "First tokens of the text that are read in any case."
        ),
    )


class CachePartDrafter(Drafter):
    """A drafter that runs the target over some columns of the target's KV cache (one column per token)."""

    uses_target = True
    reader: ClassVar[str]
    """What the page calls the model that runs over a part of the cache."""

    rest: ClassVar[str]
    """A sentence for the page on the columns that are left out."""

    def __init__(self, settings, target, draft: DraftChain | None) -> None:
        """draft: a drafter with a draft model, for selectors that need a draft model; None for all other selectors."""
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
        selector = SELECTORS[settings["selector"]]
        if not selector.needs_draft:
            return cls(settings, models.target, None)
        if not DraftChain.needs.keys() <= models.parts.keys():
            raise UserError(
                f"The selector {selector.key} needs a draft model, which says what to read."
            )
        options = {"length": AHEAD, "stop_below": 0.0}
        return cls(settings, models.target, DraftChain.build(options, models))

    def begin(self, start):
        super().begin(start)
        sinks = self.settings["sinks"]
        budget = self.settings["budget"] or max(len(start.prompt) // PART, FEWEST, sinks + 1)
        tokenizer = self.target.tokenizer
        piece = None if tokenizer is None else lambda token: tokenizer.decode([token])
        guesses = self._continuation, self._read_by_draft
        self._past = Past(start.target, start.prompt, piece, *guesses)
        self._selector = SELECTORS[self.settings["selector"]](budget, sinks)
        self._queries, self._passes, self.shown = Queries(), 0, []
        self.view, self._rows = None, []
        if start.target.length:  # else the text began with one token, so nothing has been read
            self._selector.begin(self._past)
            watch = self._queries if self._selector.follows else None
            self.view = CacheView(start.target, watch)

    def _continuation(self, count: int) -> list[int]:
        self._begin_draft()
        return self._draft.propose(self.start.prompt, count).tokens

    def _read_by_draft(self) -> Session:
        self._begin_draft()
        self._draft.reader.read_logits(self.start.prompt)
        return self._draft.reader.session

    def _begin_draft(self) -> None:
        most = self._draft.max_context - AHEAD
        if len(self.start.prompt) > most:
            raise UserError(
                f"The draft model reads {most} tokens at most, and so cannot read this prompt for "
                f"{self._selector.key}."
            )
        self._draft.begin(replace(self.start, sampling=Sampling(), constraint=None))

    def passes(self):
        return {"own cache": self._passes} | ({} if self._draft is None else self._draft.passes())

    @property
    def share(self) -> float:
        """The bytes of keys and values that a draft pass uses, as a share of those of the whole KV cache."""
        return self._selector.share(self._past.session.length)

    def turn_to(self, context: Sequence[int]) -> None:
        """Let the selector choose columns of the text up to the root, context[-1], and make the exhibits that show the
        choice. Must be called before each draft."""
        self._past.tokens = context
        changes = self._selector.changes(self._past)
        self.view.take(self._selector.chosen if changes else None)
        if changes or not self.shown:
            labels = self.view.reduced, self.reader, self.rest
            self.shown = exhibits(self._selector, self._past, *labels)
        self._rows = []

    def read(self, tokens: Sequence[int]) -> Tensor:
        """Run the target over R tokens in one pass with the chosen part of the cache; returns logits [R, V]. Raises
        UserError for NaN."""
        self._passes += 1
        self._rows += tokens
        logits = self.view.feed(tokens)
        refuse_nan(logits, self.target.name)
        return logits

    def learn(self, count: int) -> None:
        """Let the selector learn from a step. count: how many of the tokens passed to ``read`` since ``turn_to`` were
        accepted, counted from the first one."""
        queries, tokens, self._rows = self._queries.taken(), self._rows[:count], []
        if self._selector.follows and tokens:
            kept = {layer: rows[:, : len(tokens)] for layer, rows in queries.items()}
            self._selector.learn(kept, tokens)
