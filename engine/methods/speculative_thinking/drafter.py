"""The small model thinks, and hands over to the large one where its words show that it needs help.

Yang et al., "Speculative Thinking: Enhancing Small-Model Reasoning with Large Model Guidance at Inference Time" (2025).
At the beginning of each step the small model writes some tokens ahead. If these hold a cue, they are thrown away and
the large model writes instead: a few tokens where the small model affirms or reflects, more tokens where it wants to
verify or has reflected too often. All other tokens are the small model's, unchecked.

The authors also put a sentence into the text before they help a model that reflects too often; this is left out here.
"""

from engine.core.exhibits import Words
from engine.core.options import choice, whole
from engine.core.tree import ROOT, DraftTree
from engine.methods.shared.draft_model import DraftModelDrafter
from engine.methods.shared.reasoning import COLUMN_CUES, CUES, ENDINGS, Steps, cue_in, share_written

KINDS = {"words": (CUES,), "columns": (COLUMN_CUES,), "both": (CUES, COLUMN_CUES)}
SHOWN = 6  # last hand-overs that the exhibit shows


class SpeculativeThinkingDrafter(DraftModelDrafter):
    """Proposes one unchecked token while the small model thinks, and nothing while the large model writes
    (``engine.core.switching``)."""

    key = "speculative_thinking"
    title = "Speculative Thinking"
    family = "chain"
    summary = "A small model thinks, unchecked, and hands over to a large one at cues in its words: lossy."
    draw_kinds = ("unseen",)
    options = (
        choice("cues", "both", tuple(KINDS), "Cues").meaning("Words that hand over: the authors', those of worked sums in columns, or both."),
        choice("ending", "sentence", tuple(ENDINGS), "A step ends with a").meaning("Where a step ends: at a line break, or at a full stop, too."),
        whole("ahead", 12, 1, 64).meaning("Tokens that are searched for a cue at the beginning of a step."),
        whole("taken", 20, 1, 256).meaning("Tokens that the large model writes after a cue."),
        whole("verifying", 40, 1, 512).meaning("Tokens that it writes where the small model wants to verify, or reflects too often."),
        whole("patience", 15, 1, 100, advanced=True).meaning("Reflections after which the large model takes over for longer."),
    )  # fmt: skip
    loop = "switching"
    reads_chains = True
    trial = {"ahead": 2, "taken": 2, "verifying": 3}

    def __init__(self, settings, draft, vocabulary, tokenizer, end_tokens) -> None:
        super().__init__(settings, draft, vocabulary)
        self.tokenizer, self.end_tokens = tokenizer, end_tokens

    @classmethod
    def build(cls, settings, models):
        target = models.target
        draft, ends = models.part("draft"), target.end_tokens
        return cls(settings, draft, target.vocab_size, target.tokenizer, ends)

    def begin(self, start):
        super().begin(start)
        self._steps = Steps(self.tokenizer, self.settings["ending"], self.end_tokens)
        self._step: list[int] = []  # tokens of the step so far
        self._large = 0  # tokens that the large model still has to write
        self._ready = DraftTree()  # tokens that the small model has written ahead
        self._used = 0  # how many of these were proposed
        self._reflections = 0
        self._written = {"small": 0, "large": 0}
        self._handed: list[list] = []

    def propose(self, context, max_depth):
        tree = DraftTree()
        if not self._large and not self._step:
            self._look_ahead(context)
        if self._large:
            return tree
        if self._used == len(self._ready):
            self._see(context, 1)
        node = self._used
        (drawn,) = self._ready.draws[node - 1]
        law = None if drawn.law is None else self._ready.laws[drawn.law]
        tree.draw(ROOT, self._ready.tokens[node], drawn.kind, law, "draft model")
        self._used += 1
        return tree

    def _see(self, context, count: int) -> None:
        self._ready = self._chain(
            context, count, lambda tree: not self._steps.ended([*self._step, *tree.tokens])
        )
        self._used = 0
        self._reader.keep([])  # the rows are read again once their tokens are in the text

    def _look_ahead(self, context) -> None:
        """Decide at the beginning of a reasoning step which model writes this step."""
        self._see(context, min(self.settings["ahead"], self.max_context - len(context)))
        hit = None
        for kinds in KINDS[self.settings["cues"]]:
            hit = hit or cue_in(self._steps.text(self._ready.tokens), kinds)
        if hit is None:
            return
        kind, cue = hit
        self._reflections += kind == "reflection"
        often = self._reflections >= self.settings["patience"]
        self._reflections = 0 if often else self._reflections
        longer = often or kind == "verification"
        self._large = self.settings["verifying" if longer else "taken"]
        self._ready, self._used = DraftTree(), 0
        said = "reflected too often" if often else kind
        self._handed.append([f"From token {len(context)}: {said}, by the cue “{cue}”."])

    def observe(self, kept):
        small = kept.logits is None
        self._written["small" if small else "large"] += len(kept.tokens)
        if not small:
            self._large -= 1
        self._step += kept.tokens
        if self._steps.ended(self._step):
            self._step = []
            self._ready, self._used = DraftTree(), 0
        kept.tree.exhibits.append(share_written(self._written))
        if self._handed:
            kept.tree.exhibits.append(Words("Hand-overs to the large model", self._handed[-SHOWN:]))
