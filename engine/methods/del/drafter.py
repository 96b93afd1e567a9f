"""The target drafts with its first layers; the number of layers and of drafted tokens is chosen at every step.

Entezari Zarch et al., "DEL: Context-Aware Dynamic Exit Layer for Efficient Self-Speculative Decoding" (2025). For every
exit (every layer after which the target could draft), the token that would have been drafted there is computed from the
hidden states at verified positions, which include the last positions of the prompt. These *shadow tokens* show how good
each exit is; see ``engine.methods.del.exits``.

To verify, the target continues from the hidden states at the exit, so each layer runs once over a drafted token. A
target whose passes are compiled for a CPU runs all layers again instead, because one compiled graph of all layers takes
less time than one graph for each remaining layer.

Beyond the paper: with ``when=pays`` nothing is drafted in a step where plain decoding promises more tokens per layer.
The cost of the head is then counted as well, because in a small target the head costs as much as a layer. While nothing
is drafted, shadow tokens are computed only every ``interval`` steps. With ``when=always`` every step drafts and only
layers are counted, as in the paper.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.core.exhibits import Curve, Exhibit, Gauge, Later, Layer, Series
from engine.core.exhibits import Layers as LayersExhibit
from engine.core.options import choice, number, whole
from engine.core.proposal import Proposal
from engine.core.tree import DraftTree
from engine.methods.shared.own_layers import OwnLayersDrafter
from engine.model.going_on import goes_on
from engine.model.layers import head_in_layers

from .exits import Exits, Plan

ELEMENTS = 2**24
"""The most logits (positions times vocabulary) that are held in memory at once while shadow tokens are computed."""


class DynamicExitDrafter(OwnLayersDrafter):
    key = "del"
    shape = "chain"
    title = "Dynamic exit layer, DEL"
    summary = "The target drafts with its first layers; how many of them is chosen at every step."
    options = (
        whole("length", 18, 1, 32, "Length").meaning("Most tokens drafted in a step."),
        choice("stop", "confidence", ("confidence", "length"), "Stop by").meaning(
            "confidence: stop after a token that is less likely than the exit's threshold. length: draft as "
            "many tokens as promise the most tokens per layer."
        ),
        choice("when", "pays", ("pays", "always"), "Draft").meaning(
            "pays: draft only where it promises more tokens per layer than plain decoding. always: at every step."
        ),
        number("decay", 0.95, 0.0, 1.0, advanced=True).meaning(
            "Share of its weight that an older count keeps from step to step."
        ),
        whole("interval", 32, 1, 256, advanced=True).meaning(
            "Steps without a draft between two looks at the exits."
        ),
        whole("prompt", 16, 1, 256, "Prompt tokens", advanced=True).meaning(
            "Last tokens of the prompt on which the exits are tried first."
        ),
    )
    trial = {"length": 2, "when": "always"}

    def __init__(self, settings, target) -> None:
        super().__init__(settings, target)
        self.feature_layers = tuple(range(1, target.layers + 1)) if target.layers > 1 else ()
        self.feature_rows = settings["prompt"]

    @classmethod
    def build(cls, settings, models):
        if models.target.layers > 1:
            models.target.prepare_exits(range(1, models.target.layers))
            goes_on(models.target, 1)  # tested before a text is timed
        return cls(settings, models.target)

    def expect(self, coming):
        self.target.expect((), 0, coming)  # for the steps whose features are not wanted

    def begin(self, start):
        super().begin(start)
        self._exits = None
        self._undrafted = 0  # steps in a row without a draft
        self._drafts = False
        if self.feature_layers:
            counted = self.settings["when"] == "pays"
            head = head_in_layers(self.target.model) if counted else 0.0
            self._exits = Exits(self.target.layers, self.settings["decay"], head)
            self._look(start.features)

    def propose(self, context, max_depth):
        tree, begun = DraftTree(), None
        if self._exits is None:
            return tree
        most = min(self.settings["length"], max_depth)
        plan = self._exits.best(most, least=int(self.settings["when"] == "always"))
        if plan.length:
            threshold = self._exits.threshold(plan.layer)
            by_length = self.settings["stop"] == "length"
            bounds = (plan.length, 0.0) if by_length else (most, threshold)
            begun, sure = self._chain(tree, context, plan.layer, *bounds)
            if not by_length:
                tree.exhibits.append(self._confidence(sure, threshold))
        self._drafts = len(tree) > 0
        shown = Shown(self._exits.snapshot(), plan, most)
        tree.exhibits[:0] = [Later(shown.stack), Later(shown.curve)]
        return Proposal(tree, begun=begun)

    @property
    def wants_features(self):
        return self._drafts or (self._undrafted + 1) % self.settings["interval"] == 0

    def observe(self, kept):
        self._undrafted = 0 if len(kept.tree) else self._undrafted + 1
        if self._exits is not None and self._undrafted % self.settings["interval"] == 0:
            self._look(kept.features)

    @torch.no_grad()
    def _look(self, features: Tensor) -> None:
        """Record the token that each exit would have drafted at verified positions. features: [R, L*H], the hidden
        states of all layers at these R positions."""
        if not len(features):
            return
        layers = self.target.layers
        # [L, R, H]; the states of the last layer are normed already
        states = features.unflatten(-1, (layers, -1)).transpose(0, 1)
        states = torch.cat([self.target.norm(states[:-1]), states[-1:]]).flatten(0, 1)
        tokens, sure = [], []
        for part in states.split(max(1, ELEMENTS // self.target.vocab_size)):
            best = self.law(self.target.head(part)).max(-1)
            tokens.append(best.indices)
            sure.append(best.values)
        tokens, sure = (torch.cat(parts).view(layers, -1) for parts in (tokens, sure))
        self._exits.learn(tokens[:-1], sure[:-1], tokens[-1])

    def _confidence(self, sure: float, threshold: float) -> Gauge:
        note = (
            "Below the threshold, so drafting stopped."
            if sure < threshold
            else "The draft has its full length."
        )
        return Gauge("Probability of the last drafted token", sure, mark=threshold, note=note)


@dataclass(frozen=True)
class Shown:
    """The record of the exits by which a step was planned, from which the step's pictures are made. most: the most
    tokens that the step could have drafted."""

    exits: Exits
    plan: Plan
    most: int

    @property
    def accepted(self) -> list[float]:
        """For each exit, the share of its shadow tokens that equal the target's token."""
        return [round(share, 3) for share in self.exits.acceptance.tolist()]

    def stack(self) -> Exhibit:
        accepted, plan = self.accepted, self.plan
        shown = [Layer("run", value) for value in [*accepted, None]]
        if plan.length:
            shown[plan.layer - 1] = Layer("exit", accepted[plan.layer - 1])
            shown[plan.layer :] = [Layer("skipped", layer.value) for layer in shown[plan.layer :]]
        note = "A bar is the share of recent positions at which this layer's exit chose the target's token."
        return LayersExhibit("Layers that draft", shown, note=note)

    def curve(self) -> Exhibit:
        values, length = self.exits.per_layer(self.most), self.plan.length
        gains = (values[:, 1:].max(-1).values / values[0, 0]).tolist()
        return Curve(
            "Tokens per layer by exit, plain decoding = 1",
            range(1, len(values) + 1),
            [
                Series("tokens per layer", [round(gain, 3) for gain in gains]),
                Series("share accepted", self.accepted),
            ],
            x_label="layers that draft",
            mark=self.plan.layer if length else None,
            note="The mark shows the exit that drafts."
            if length
            else "No exit promises more than plain decoding, so nothing is drafted.",
        )
