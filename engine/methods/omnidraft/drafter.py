"""A chain from a draft model with another vocabulary. During use the draft model learns from the target, and a cache
learns which of its runs of tokens equal one token of the target.

Ramakrishnan et al., OmniDraft: A Cross-Vocabulary, Online Adaptive Drafter for On-Device Speculative Decoding (2025).
Tokens that both vocabularies have are translated one to one. A *run* of the draft model's tokens may spell one token of
the target. When the target writes such a token, its run enters a cache; from then on, drafted runs that equal it are
merged into this token (``engine.methods.omnidraft.translating``). A copy of the draft model is distilled between steps
on the refusals. The copy learns the target's distribution, mapped to the draft model's vocabulary, and the run of the
token that the target wrote. A head on the draft model's hidden states learns which tokens are kept; its predictions
decide how long a draft is.

Cache, copy and head belong to one visitor: they are kept in the visitor's memory and forgotten with it. The paper's
rule compares p with the product of the run's probabilities, which is not the law of a merged token; here each token is
judged by its true law.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.core.drafter import Drafter, Kept
from engine.core.exhibits import Later, Table, Token
from engine.core.memory import Store
from engine.core.options import number, whole
from engine.core.tree import ROOT, DraftTree
from engine.methods.omnidraft.online_head import OnlineHead
from engine.methods.omnidraft.run_cache import RunCache
from engine.methods.omnidraft.translating import Proposal, Translator, root
from engine.methods.shared.draft_model import DraftReader
from engine.methods.shared.learning_pace import LEARNING, LearningDraft
from engine.methods.shared.private_draft import PrivateDraft
from engine.methods.shared.spelling import ForeignDraft
from engine.model.language_model import LanguageModel
from engine.printable import printable


@dataclass
class Learned(Store):
    """Everything that was learned from one visitor's texts."""

    private: PrivateDraft
    cache: RunCache
    head: OnlineHead

    @property
    def nbytes(self) -> int:
        return self.private.nbytes + self.cache.nbytes + self.head.nbytes


class OmniDraftDrafter(LearningDraft, Drafter):
    key = "omnidraft"
    title = "OmniDraft"
    family, shape = "chain", "chain"
    summary = "A draft model with another vocabulary; your texts teach it which runs of its tokens are the target's."
    draw_kinds = ("iid", "one_hot")
    options = (
        whole("length", 6, 1, 32).meaning("Most tokens of the target drafted in a step."),
        number("threshold", 0.7, 0.0, 1.0, "Chance of a refusal").meaning(
            "Draft no further once the chance that a token so far is refused exceeds this."
        ),
        *LEARNING,
    )
    needs = {"omnidraft": "foreign_draft"}
    trial = {"length": 2, "milliseconds": 0.0, "every": 3, "rate": 0.05, "threshold": 0.9}

    def __init__(self, settings, part: ForeignDraft, vocabulary: int) -> None:
        super().__init__(settings)
        self._model, self._spelling = part.model, part.spelling
        self._vocabulary = vocabulary

    @classmethod
    def build(cls, settings, models):
        drafter = cls(settings, models.part("omnidraft"), models.target.vocab_size)
        drafter._remember_pair(models, drafter._model.name)
        return drafter

    def begin(self, start):
        super().begin(start)
        rate = self.settings["rate"]
        self._learned = start.memory.store((self.key, *self._pair, rate), lambda: self._new(rate))
        self._new_runs = self._learned.cache.see(start.prompt)
        self._text: list[int] = []  # the context in the draft's tokens
        self._count = 0  # number of context tokens that ``_text`` has
        self._begin_learning(self._learned.private, self._spelled(start.prompt))
        self._forget_step()

    def _forget_step(self) -> None:
        self._proposals: list[Proposal] = []
        self._nodes: list[list[int]] = []  # for each proposal, its tokens that the draft has read
        self._states: list[Tensor] = []  # hidden states behind the proposals that it has read

    def _new(self, rate: float) -> Learned:
        width = self._model.hidden_size
        return Learned(PrivateDraft(self._model, rate), RunCache(self._spelling), OnlineHead(width))

    def _reading(self, model: LanguageModel) -> DraftReader:
        return DraftReader(
            model, self._model.vocab_size, self.sampling, features=(self._model.layers,)
        )

    def _spelled(self, context) -> list[int]:
        self._text += self._spelling.spelled(context[self._count :])
        self._count = len(context)
        return self._text

    def propose(self, context, max_depth):
        self._learn()
        text = self._spelled(context)
        self._passage.tokens = list(text)
        length = min(self.settings["length"], max_depth)
        tree = DraftTree()
        room = self._model.max_context - len(text) - length * self._spelling.longest
        if text and room >= 0:
            self._draft(tree, text, length)
        return tree

    def _draft(self, tree: DraftTree, text: list[int], length: int) -> None:
        learned = self._learned
        greedy = self.sampling.greedy
        pick = (lambda q: int(q.argmax())) if greedy else self.chance.draw
        translator = Translator(self._reader, learned.cache, self._vocabulary, pick, greedy)
        place, parent, all_kept = root(self._reader.read(text)), ROOT, 1.0
        while (proposal := translator.next(place)) is not None:
            shown = proposal.chance if proposal.law is None else None
            source = "draft model" if len(proposal.run) == 1 else "merged run"
            parent = tree.draw(parent, proposal.token, proposal.kind, proposal.law, source, shown)
            self._proposals.append(proposal)
            self._nodes.append(proposal.nodes)
            if len(tree) == length:
                break
            place, self._nodes[-1] = translator.behind(proposal)
            self._states.append(place.state)
            all_kept *= learned.head.chance(place.state)
            if 1 - all_kept > self.settings["threshold"]:
                break

    def observe(self, kept: Kept):
        self._reader.keep([number for node in kept.path for number in self._nodes[node]])
        tree, learned, accepted = kept.tree, self._learned, len(kept.path)
        fates = [True] * accepted + [False] * (len(tree) > accepted)
        for state, fate in zip(self._states, fates, strict=False):
            learned.head.learn(state, fate)
        self._new_runs += learned.cache.see(kept.tokens)
        if (law := self._refusal(kept)) is not None:
            self._fail(kept.tokens[: accepted + 1], law.cpu())
        if self._proposals:
            proposals, new = list(self._proposals), self._new_runs
            tree.exhibits.append(Later(lambda: self._shown_translation(proposals)))
            tree.exhibits.append(Later(lambda: self._shown_learning(new)))
        self._forget_step()

    def _fail(self, tokens: list[int], p: Tensor) -> None:
        """Store a refusal as training data for the draft model. tokens: the kept tokens of the step, then the token
        that the target wrote itself. p: the target's law at that token. The draft model will learn p, mapped to its own
        vocabulary, for the first token of that token's run, and then the other tokens of the run."""
        passage, private = self._passage, self._learned.private
        *path, written = tokens
        passage.tokens += self._spelling.spelled(path)
        rows = self._model.vocab_size
        private.failed(passage, len(passage.tokens), self._spelling.first_law(p, rows))
        for before, token in zip(
            self._spelling.runs[written], self._spelling.runs[written][1:], strict=False
        ):
            passage.tokens.append(before)
            certain = torch.zeros(rows)
            certain[token] = 1.0
            passage.add(len(passage.tokens), certain)

    def _shown_translation(self, proposals: list[Proposal]) -> Table:
        rows = [
            [
                " + ".join(
                    f"“{printable(self._spelling.pieces[token], kept='')}”"
                    for token in proposal.run
                ),
                Token(proposal.token),
                "one to one" if len(proposal.run) == 1 else "a run from the cache",
                round(proposal.chance, 3),
            ]
            for proposal in proposals
        ]
        note = "The draft reads and writes tokens of a vocabulary of its own."
        columns = ["draft", "target", "translated", "q of the run"]
        return Table("From the draft’s tokens to the target’s", columns, rows, note=note)

    def _shown_learning(self, new: int) -> Table:
        learned = self._learned
        rows = [
            ["runs in the cache", len(learned.cache)],
            ["of them new in this text", new],
            ["refusals to learn from, over all of your texts", learned.private.failures],
            ["updates of your copy of the draft", learned.private.version],
            ["tokens from which the length is learned", learned.head.seen],
            ["kilobytes of all of it", round(learned.nbytes / 1000)],
        ]
        return Table("What your texts have taught", ["", "value"], rows)
