"""The target drafts for itself, without some of its middle sublayers.

SWIFT (Xia et al., "SWIFT: On-the-Fly Self-Speculative Decoding for LLM Inference Acceleration", 2024): no draft model
and no training. The skip set is optimised on the tokens written so far, by random search and Bayesian optimisation. A
draft ends where the skipping target is not confident. At every drafted position the likeliest alternatives are
verified, too: the less confident the skipping target is, the more of them. Draft passes use the target's own keys and
values.

Beyond the paper: where skipping does not pay, for instance with few layers, the text is decoded plainly. Trials of skip
sets and drafts together may lose only a small share of the elapsed time, plus a few steps at the start
(``engine.methods.swift.ledger``). Measured times therefore decide which steps draft, except with ``when=always``.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from engine.core.drafter import Drafter, Kept
from engine.core.exhibits import Exhibit
from engine.core.options import choice, number, whole
from engine.core.sampling import display_distribution, likeliest
from engine.core.tree import ROOT, DraftTree
from engine.methods.swift.skipping import SkipSearch, candidates
from engine.methods.swift.swift_shown import shown
from engine.model.layers import Layers, cost_share

WIDTHS = ((0.95, 0.3), (0.8, 0.5), (0.5, 0.8), (0.0, 1.0))
"""Pairs (probability, share). If the likeliest token at a position has at least this probability, only this share of
the option ``width`` (the most tokens per position) is verified."""
ENOUGH = 0.95  # from this matchness on, no better skip set is sought
LEARNING = 0.1  # weight of a new token in the running acceptance
ROW_COST = 0.05  # price of one more row to check, in passes
PASS_COST = 0.1  # price of a draft pass beyond that of the weights that it reads, in passes


class SwiftDrafter(Drafter):
    key = "swift"
    title = "Skipped layers, SWIFT"
    family = "self"
    summary = "The target drafts for itself without some of its middle layers, chosen on the fly."
    draw_kinds = ("without_replacement",)
    uses_target = True
    learns = True
    keeps_settings_only = True
    options = (
        whole("length", 6, 1, 32, "Length").meaning("Most tokens drafted in a step."),
        number("skip", 0.45, 0.05, 0.95, "Share skipped").meaning(
            "Share of the middle sublayers (attention, MLP) left out when drafting."
        ),
        number("confidence", 0.8, 0.0, 1.0, "Confidence").meaning(
            "Draft no further once the likeliest token has less probability than this."
        ),
        whole("width", 2, 1, 16, "Width").meaning(
            "Most tokens verified at one position; the surer the draft, the fewer (10 in the paper)."
        ),
        whole("window", 16, 4, 256, advanced=True).meaning(
            "Recent tokens on which a skip set is scored."
        ),
        whole("interval", 64, 1, 1024, advanced=True).meaning(
            "Tokens written between two trials of a skip set; a trial costs more than a pass."
        ),
        whole("trials", 64, 1, 1024, advanced=True).meaning("Most skip sets tried."),
        whole("bayes", 2, 1, 256, advanced=True).meaning(
            "The Gaussian process proposes one trial in this many; the others are random (25 in the paper, "
            "of a thousand trials)."
        ),
        choice("when", "pays", ("pays", "always"), "Draft", advanced=True).meaning(
            "Try and draft only where the clock says that it pays, or always."
        ),
    )
    trial = {
        "length": 2,
        "window": 4,
        "interval": 1,
        "confidence": 0.0,
        "when": "always",
        "skip": 0.95,
    }

    def __init__(self, settings, target) -> None:
        super().__init__(settings)
        self.target = target

    @classmethod
    def build(cls, settings, models):
        return cls(settings, models.target)

    def begin(self, start):
        super().begin(start)
        sublayers = candidates(self.target.layers)
        size = max(1, round(self.settings["skip"] * len(sublayers))) if sublayers else 0
        key = (self.key, self.target.name, self.target.parameters, size)
        self._search = start.memory.store(key, lambda: SkipSearch(sublayers, size))
        self._next_trial = len(start.prompt) + self.settings["interval"] // 4
        self._kept_share = self._search.best[1]  # running share of drafted tokens that were kept
        self._tried = False
        self._shown: tuple[int, list[Exhibit]] | None = None

    def propose(self, context, max_depth):
        up_to_root = context[: self.start.target.length + 1]  # forced tokens may follow the root
        self._tried = bool(self._search.sublayers) and self._improve(up_to_root)
        skipped, matchness = self._search.best
        tree = DraftTree()
        length = min(self.settings["length"], max_depth)
        if skipped and self._pays(skipped, length):
            self._draft(tree, context, Layers(skipped=skipped), length)
        tree.exhibits += self._exhibits(skipped, matchness)
        return tree

    def observe(self, kept):
        walked = [child for place in (ROOT, *kept.path) for child in kept.tree.children(place)[:1]]
        for node in walked:
            hit = float(node in kept.path)
            self._kept_share += LEARNING * (hit - self._kept_share)
        self._account(kept)

    def _account(self, kept: Kept) -> None:
        ledger, spent = self._search.ledger, sum(kept.milliseconds.values())
        if len(kept.tree) or self._tried:
            ledger.other_step(spent, len(kept.tokens))
        else:
            ledger.plain_step(spent)
        if len(kept.tree) and not self._tried:
            ledger.draft_pass(kept.milliseconds.get("draft", 0.0) / kept.tree.deepest)

    def _pays(self, skipped: frozenset, length: int) -> bool:
        """Whether a draft of at most ``length`` tokens is expected to write more tokens than plain decoding does in the
        same time. The estimate uses the share of drafted tokens that were kept and the measured time of draft passes.
        Returns False once trials and drafts have lost more than a small share of the elapsed time, and always True with
        ``when=always``."""
        if self.settings["when"] == "always":
            return True
        ledger, share = self._search.ledger, self._kept_share
        if not share or not ledger.affords(1.0):
            return False
        if ledger.draft is None:
            cost = cost_share(self.target.model, Layers(skipped=skipped)) + PASS_COST
        else:
            cost = ledger.draft / ledger.plain
        written, kept = 1.0, 1.0
        for count in range(1, length + 1):
            kept *= share
            written += kept
            if written / (1 + count * (cost + ROW_COST)) > 1:
                return True
        return False

    def _draft(self, tree: DraftTree, context: Sequence[int], layers: Layers, length: int) -> None:
        """Add to the tree a chain, with alternatives beside it, that the target drafts when only these layers are run.
        The chain's rows go through the target's own session, and are dropped from it afterwards."""
        session, parent = self.start.target, ROOT
        rows = context[session.length :]  # the root, and the forced tokens after it
        for _ in range(length):
            parents = range(session.rows - 1, session.rows - 1 + len(rows))
            q = self._q(session.through(rows, layers, parents)[-1:])[0]
            confidence = float(q.max())
            tokens = self._candidates(q, self._width(confidence))
            kind = "one_hot" if self.sampling.greedy else "without_replacement"
            drawn = [tree.draw(parent, token, kind, q, "own layers") for token in tokens]
            parent, rows = drawn[0], tokens[:1]
            if confidence < self.settings["confidence"]:
                break  # the tokens drawn so far stay: a drawn token must never be dropped
        session.drop()

    def _width(self, confidence: float) -> int:
        share = next((share for least, share in WIDTHS if confidence >= least), 1.0)
        return math.ceil(share * self.settings["width"])

    def _candidates(self, q: Tensor, count: int) -> list[int]:
        """Return at most ``count`` tokens to verify at a position with the draft law q [V]. The drafted chain continues
        after the first of them."""
        count = max(1, min(count, int((q > 0).sum())))
        if self.sampling.greedy:
            return q.topk(count).indices.tolist()
        tokens, left = [], q.clone()
        for _ in range(count):
            tokens.append(self.chance.draw(left))
            left[tokens[-1]] = 0
        return tokens

    def _improve(self, context) -> bool:
        """Try one more skip set on the last tokens, if a trial is due and affordable. context: the text up to the root.
        Returns whether a set was tried."""
        window = min(self.settings["window"], len(context) - 2)
        tried, best = len(self._search.scores), self._search.best[1]
        done = tried >= self.settings["trials"] or best >= ENOUGH
        if done or window < 2 or len(context) < self._next_trial:
            return False
        if self.settings["when"] == "pays" and not self._search.ledger.affords():
            return False
        self._next_trial = len(context) + self.settings["interval"]
        proposal = self._search.proposal(self.chance.uniforms, self.settings["bayes"])
        score = self._matchness(context, window, Layers(skipped=self._search.named(proposal)))
        self._search.learn(proposal, score)
        if score > best:
            self._kept_share = score
        return True

    @torch.no_grad()
    def _matchness(self, context, window: int, layers: Layers) -> float:
        """Return the share of the last ``window`` tokens that the target with only these layers would have written."""
        first = len(context) - 1 - window
        session = self.target.session(len(context) + 1)
        session.take_over(self.start.target, first)
        rows = context[first : first + window]
        states = session.through(rows, layers, range(-1, window - 1))
        guesses = likeliest(self.target.head(states))
        written = context[first + 1 : first + 1 + window]
        return sum(a == b for a, b in zip(guesses, written, strict=True)) / window

    @torch.no_grad()
    def _q(self, states: Tensor) -> Tensor:
        """Return the laws [R, V] of the tokens that follow hidden states [R, H], on the CPU."""
        logits = self.target.head(states)
        return display_distribution(logits, self.sampling).cpu()

    def _exhibits(self, skipped: frozenset, matchness: float) -> list[Exhibit]:
        """Return the exhibits, which are rebuilt only after a trial."""
        tried = len(self._search.scores)
        if self._shown is None or self._shown[0] != tried:
            self._shown = (tried, shown(self.target.layers, skipped, matchness, tried))
        return self._shown[1]
