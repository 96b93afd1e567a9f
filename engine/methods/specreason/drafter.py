"""A small model writes a whole reasoning step; a large one grades the step, and rewrites it if the grade is low.

Pan et al., "SpecReason: Fast and Accurate Inference-Time Compute via Speculative Reasoning" (2025). A reasoning step is
a line of a worked sum, or a sentence. It is drafted as one chain, over which the large model is run in one pass. The
rule ``engine.methods.specreason.rule`` accepts the whole reasoning step or nothing of it. After a rejection nothing is
drafted until the large model has written a whole reasoning step itself.
"""

import torch

from engine.core.options import choice, whole
from engine.core.proposal import Proposal
from engine.core.seen import Probes
from engine.core.tree import DraftTree
from engine.errors import UserError
from engine.methods.shared.draft_model import DraftModelDrafter
from engine.methods.shared.reasoning import ENDINGS, Steps, share_written
from engine.model.language_model import LanguageModel

QUESTION = "\nGrade the last step from 0 to 9: "
GRADES = "0123456789"


class SpecReasonDrafter(DraftModelDrafter):
    """A chain of the length of one reasoning step. The token that ends the reasoning step stays in the chain, so no
    drawn token is dropped. Therefore the drafter is exact under an exact rule, which may accept only the first tokens
    of the reasoning step."""

    key = "specreason"
    title = "Steps by a small model, SpecReason"
    family, shape = "chain", "chain"
    summary = "A small model writes whole reasoning steps, which a large one grades and may rewrite: lossy."
    options = (
        choice("ending", "sentence", tuple(ENDINGS), "A step ends with a").meaning(
            "Where a step ends: at a line break, or at a full stop, too."
        ),
        whole("length", 40, 1, 64, "Longest step").meaning("Most tokens of a step."),
        choice("score", "likelihood", ("likelihood", "question"), "Graded by").meaning(
            "How a step is graded: by its likelihood, or by asking the large model for a digit, as in the paper."
        ),
    )
    uses_target = True
    default_verifier = default_greedy_verifier = "specreason"
    reads_chains = True
    trial = {"length": 2}

    def __init__(self, settings, draft, vocabulary, target: LanguageModel) -> None:
        super().__init__(settings, draft, vocabulary)
        self.target = target

    @classmethod
    def build(cls, settings, models):
        target = models.target
        if settings["score"] == "question" and asked(target) is None:
            raise UserError(
                f"{target.name} has no single token for each digit, so it cannot be asked for a grade."
            )
        return cls(settings, models.part("draft"), target.vocab_size, target)

    def begin(self, start):
        super().begin(start)
        target = self.target
        self._steps = Steps(target.tokenizer, self.settings["ending"], target.end_tokens)
        self._rewritten: list[int] | None = None  # tokens of the step that is being rewritten
        self._written = {"small": 0, "large": 0}
        asks = self.settings["score"] == "question"
        self._question = asked(self.target) if asks else None

    def propose(self, context, max_depth):
        if self._rewritten is not None:
            return DraftTree()
        length = min(self.settings["length"], max_depth)
        tree = self._chain(context, length, lambda tree: not self._steps.ended(tree.tokens))
        return Proposal(tree, self._question_behind(tree, len(context)))

    def _question_behind(self, tree: DraftTree, length: int) -> Probes | None:
        """Return the question about the grade as probe rows after the drafted reasoning step; None if the context has
        no room for them. length: the number of tokens in the text."""
        if self._question is None:
            return None
        rows, choices = self._question
        first = len(tree)
        if length + first + len(rows) > self.target.max_context:
            return None
        read = torch.tensor(self.target.readable(rows), device=self.target.device)
        parents = range(first - 1, first + len(rows) - 1)
        return Probes.embedded(self.target.embed(read), parents, choices=choices)

    def observe(self, kept):
        super().observe(kept)
        small = len(kept.path) + (kept.final is None)
        self._written["small"] += small
        self._written["large"] += len(kept.tokens) - small
        if len(kept.tree) and not small:
            self._rewritten = []
        if self._rewritten is not None:
            self._rewritten += kept.tokens
            long = len(self._rewritten) >= self.settings["length"]
            if long or self._steps.ended(self._rewritten):
                self._rewritten = None
        kept.tree.exhibits.append(share_written(self._written))


def asked(model: LanguageModel) -> tuple[list[int], list[int]] | None:
    """Return the tokens of the question about the grade, and the tokens of its ten possible answers; None if a digit is
    not a single token, or if the model has no tokenizer."""
    if model.tokenizer is None:
        return None
    question = model.tokenizer(QUESTION, add_special_tokens=False)["input_ids"]
    answers = [model.tokenizer(grade, add_special_tokens=False)["input_ids"] for grade in GRADES]
    single = (
        all(len(answer) == 1 for answer in answers) and len({answer[0] for answer in answers}) == 10
    )
    return (question, [answer[0] for answer in answers]) if single else None
