"""The target is run over the draft twice in one pass: first directly after the text, and once more after a request to
reflect on the draft.

"Think Before You Accept: Semantic Reflective Verification for Faster Speculative Decoding" (2025). A reflective prompt
and a second copy of the draft follow the drafted tokens as probe rows of the same pass. So the target gives two
distributions for each drafted token: the usual one from the first copy, and one from the second copy, where the target
has already seen the whole draft. The rule ``engine.methods.reflective.rule`` mixes the two distributions and accepts
tokens by the mixture, which is lossy.

The paper's prompts are for chat models. The prompts here are short, and the last few tokens of the text are repeated
before the second copy of the draft. So a model that was not tuned for instructions knows where the second copy
continues the text.
"""

from collections.abc import Sequence

import torch

from engine.core.exhibits import Token, Words
from engine.core.options import choice, whole
from engine.core.proposal import Proposal
from engine.core.seen import MOST_PROBES, Probes
from engine.core.tree import DraftTree
from engine.methods.shared.draft_chain import DraftChain
from engine.methods.shared.draft_model import DraftModelDrafter
from engine.model.language_model import LanguageModel

PROMPTS = {
    "check": "\nLet me check this again. The correct text is: ",
    "again": "\nOnce more: ",
    "none": "",
}


class ReflectiveDrafter(DraftModelDrafter):
    key = "reflective"
    family, shape = "chain", "chain"
    title = "Reflective verification"
    summary = (
        "The target reads the draft once more behind a reflective prompt, in the same pass: lossy."
    )
    options = (
        *DraftChain.options[:2],  # the options length and stop_below of the chain
        choice("prompt", "check", tuple(PROMPTS), "Reflective prompt").meaning(
            "Words that ask the target to reflect on the draft."
        ),
        whole("quoted", 4, 1, 16, "Quoted tokens", advanced=True).meaning(
            "Last tokens of the text that stand before the second copy of the draft."
        ),
    )
    size_option, usual_size = "length", DraftChain.usual_size
    uses_target = True
    default_verifier = default_greedy_verifier = "reflective"
    reads_chains = True
    trial = {"length": 2, "prompt": "again", "quoted": 2}

    def __init__(self, settings, draft, vocabulary, target: LanguageModel) -> None:
        super().__init__(settings, draft, vocabulary)
        self.target = target

    @classmethod
    def build(cls, settings, models):
        return cls(settings, models.part("draft"), models.target.vocab_size, models.target)

    def begin(self, start):
        super().begin(start)
        self._prompt = _tokens_of(self.target, PROMPTS[self.settings["prompt"]])

    def propose(self, context, max_depth):
        tree = self._chain(context, min(self.settings["length"], max_depth), self._likely)
        self._before = [*self._prompt, *context[-self.settings["quoted"] :]]
        return Proposal(tree, self._reflection(tree, self._before, len(context)))

    def _reflection(self, tree: DraftTree, before: Sequence[int], length: int) -> Probes | None:
        """Return the prompt and the second copy of the draft as probe rows; None if the pass or the context has no room
        for them.

        before: the tokens between the two copies of the draft; the last of these tokens repeats the root. length: the
        number of tokens in the text.
        """
        rows = [*before, *tree.tokens]
        room = self.target.max_context - length - len(tree)
        if not len(tree) or len(rows) > min(room, MOST_PROBES):
            return None
        read = torch.tensor(self.target.readable(rows), device=self.target.device)
        first = len(tree)  # probes are numbered behind the nodes
        parents = [first - 1, *range(first, first + len(rows) - 1)]
        again = range(len(before) - 1, len(rows))
        return Probes.embedded(self.target.embed(read), parents, again)

    def observe(self, kept):
        super().observe(kept)
        if len(kept.tree):
            kept.tree.exhibits.append(_between(self._before, kept.probes is not None))


def _between(before: Sequence[int], read: bool) -> Words:
    """Return an exhibit of the tokens between the two copies of the draft. before: these tokens. read: whether the pass
    had a second copy of the draft."""
    note = "Read in the same pass, and forgotten after it."
    if not read:
        note = "This draft was not reflected on: a second copy has no room in the pass or behind the text."
    lines = [[Token(token) for token in before]] if read else []
    return Words("Between the draft and its second copy", lines, note=note)


def _tokens_of(model: LanguageModel, text: str) -> list[int]:
    """Return the token ids of ``text``, without special tokens, because it continues another text; empty if the model
    has no tokenizer."""
    if model.tokenizer is None or not text:
        return []
    return model.tokenizer(text, add_special_tokens=False)["input_ids"]
