"""DSpark: a block in one pass, tied together by a Markov head; as much of it is verified as pays.

DSpark (DeepSeek, 2026). The block comes from a block drafter (``engine.methods.shared.block_drafter``). The positions
of the block are filled from left to right, and at each position the Markov head changes the law according to the token
before. Before a token is drawn, the confidence head predicts how likely the token is to be kept. Whether the token is
drafted depends on this prediction, on the tokens before it, and on the predictions for later positions, which do not
depend on any draw. So the length is a stopping time of the draws; q stays the true law of every drafted token, and the
text follows the target's law.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.core.drafter import Kept
from engine.core.exhibits import Curve, Later, Series, Table, Token
from engine.core.options import number, switch, whole
from engine.core.sampling import display_distribution
from engine.methods.dspark.verified_length import expected_tokens, step_costs, worth_more
from engine.methods.shared.block_drafter import DiffusionDrafter
from engine.methods.shared.block_walk import walk

SHOWN = 4  # likeliest tokens that are shown, by the backbone alone and after the Markov head


@dataclass
class Block:
    """The block of one step; L positions, V tokens, hidden size H. The *backbone* is the block drafter without the two
    heads.

    hidden, logits: [L, H] and [L, V], from the backbone. chances: for each position, the predicted chance that its
    token is kept. At positions filled so far, the prediction takes the drawn token before the position into account; at
    later positions, the backbone's likeliest token stands for it. favourites: the backbone's likeliest token at each
    position. befores: for each position filled so far, the token before it. laws: for each of these positions, the law
    from which its token was drawn.
    """

    hidden: Tensor
    logits: Tensor
    chances: list[float]
    favourites: list[int]
    befores: list[int] = field(default_factory=list)
    laws: list[Tensor] = field(default_factory=list)


class DSparkDrafter(DiffusionDrafter):
    key = "dspark"
    shape = "chain"
    title = "Block with a Markov head, DSpark"
    summary = "A block at once, tied together by a Markov head; as much of it is verified as pays."
    draw_kinds = ("iid",)
    needs = {"diffusion": "denoiser", "dspark": "spark_heads"}
    options = (
        whole("length", 0, 0, 31).meaning("Most tokens drafted in a step (0: the usual seven)."),
        switch("adaptive", True, "Only what pays").meaning(
            "Draft a token only where its predicted chance is worth its cost; else always the most."
        ),
        number("row_cost", 0.0, 0.0, 2.0, "Cost of a drafted token", advanced=True).meaning(
            "Cost of verifying a token, in steps that verify none (0: as measured on this machine)."
        ),
    )
    size_option, usual_size = "length", 7
    trial = {"length": 3, "row_cost": 0.2}

    def __init__(self, settings, drafter, target, heads, costs) -> None:
        super().__init__(settings, drafter, target)
        self.heads, self._tokens = heads, drafter.tokens
        self._costs = step_costs(costs, settings["row_cost"], drafter.config.drafts)

    @classmethod
    def at_fixed_size(cls, settings):
        fixed = settings["row_cost"] or not settings["adaptive"]
        return None if fixed else {**settings, "adaptive": False}

    @classmethod
    def build(cls, settings, models):
        denoiser, heads = models.part("diffusion"), models.part("dspark")
        heads.check(denoiser, models.folders.get("diffusion"))
        return cls(settings, denoiser, models.target, heads, models.step_costs)

    def begin(self, start):
        super().begin(start)
        self._block: Block | None = None

    @torch.no_grad()
    def propose(self, context, max_depth):
        hidden, logits = self._reader.guesses(context[-1], self._length(max_depth))
        favourites = logits.argmax(-1).tolist()
        block = Block(hidden, logits, [], favourites)
        if self.settings["adaptive"]:
            before = torch.tensor([context[-1], *favourites[:-1]], device=hidden.device)
            odds = self.heads.odds(hidden, before).float().tolist()
            block.chances = [self.heads.chance(o, place) for place, o in enumerate(odds)]

        def law(place: int, before: int) -> Tensor | None:
            return self._law(block, place, before)

        tree = walk(context[-1], law, len(logits), self.sampling, self.chance)
        if block.laws:
            shown, logits = self._moved(block), logits.cpu()
            tree.exhibits.append(Later(lambda: bias_table(shown, block, logits, self.sampling)))
        self._block = block
        return tree

    def _law(self, block: Block, place: int, before: int) -> Tensor | None:
        before_id = torch.tensor(before, device=block.hidden.device)
        if block.chances:
            if place and before != block.favourites[place - 1]:
                odds = float(self.heads.odds(block.hidden[place], before_id))
                block.chances[place] = self.heads.chance(odds, place)
            if not worth_more(block.chances, place, self._costs):
                return None
        row, bias = block.logits[place], self.heads.bias(before_id)
        row = row + bias if self._tokens is None else row.index_add(-1, self._tokens, bias)
        block.befores.append(before)
        block.laws.append(display_distribution(row, self.sampling).cpu())
        return block.laws[-1]

    def _moved(self, block: Block) -> int:
        """Return the first position at which the Markov head changed which token is likeliest; the last position if it
        changed this nowhere."""
        pairs = zip(block.laws, block.favourites, strict=False)
        changed = (place for place, (law, old) in enumerate(pairs) if int(law.argmax()) != old)
        return next(changed, len(block.laws) - 1)

    def observe(self, kept: Kept):
        super().observe(kept)
        block, self._block = self._block, None
        if block is not None and block.chances:
            chances, tokens = list(block.chances), list(kept.tree.tokens)
            outcome = outcomes(len(tokens), len(kept.path))
            kept.tree.exhibits += [
                Later(lambda: confidence_table(tokens, chances, outcome)),
                Later(lambda: cost_curve(chances, self._costs, len(tokens))),
            ]


def outcomes(drafted: int, accepted: int) -> list[str]:
    fates = ["kept"] * accepted + ["refused"] + ["not judged"] * drafted
    return fates[:drafted]


def bias_table(place: int, block: Block, logits: Tensor, sampling) -> Table:
    """Return a table of the likeliest tokens at a position, with their probabilities by the backbone alone and after
    the Markov head. logits: [L, V] of the backbone."""
    old, new = display_distribution(logits[place], sampling), block.laws[place]
    few = min(SHOWN, len(new))
    ranked = new.topk(few).indices.tolist() + old.topk(few).indices.tolist()
    rows = [[Token(token), float(old[token]), float(new[token])] for token in dict.fromkeys(ranked)]
    return Table(
        f"What the Markov head changes at place {place + 1}",
        ["token", "backbone alone", "after the token before"],
        [[Token(block.befores[place]), None, None], *rows],
        note="The first row is the token before this place; the others are the likeliest tokens of the place.",
    )


def confidence_table(tokens: Sequence[int], chances: Sequence[float], fates: list[str]) -> Table:
    """Return a table of the drafted positions with their predicted chances. If the block has a further position, the
    last row shows it; its chance was too low to draft its token."""
    rows, all_kept = [], 1.0
    for place, chance in enumerate(chances[: len(tokens) + 1]):
        all_kept *= chance
        drafted = place < len(tokens)
        name = Token(tokens[place]) if drafted else None
        fate = fates[place] if drafted else "not drafted"
        rows.append([place + 1, name, round(chance, 3), round(all_kept, 3), fate])
    columns = ["place", "token", "confidence", "chance that all so far are kept", "outcome"]
    note = "Each confidence is known before the token of its place is drawn."
    return Table("Confidence and outcome", columns, rows, note=note)


def cost_curve(chances: Sequence[float], costs: Sequence[float], chosen: int) -> Curve:
    """Return curves of the expected tokens and the cost of a step, by draft length. chosen: the length of the draft."""
    tokens = expected_tokens(chances)
    costs = list(costs[: len(tokens)])
    rates = [count / cost for count, cost in zip(tokens, costs, strict=True)]
    return Curve(
        "Cost of a step and what it should bring",
        range(len(tokens)),
        [
            Series("tokens for the cost", rates),
            Series("expected tokens", tokens),
            Series("cost, in steps without a draft", costs),
        ],
        x_label="tokens drafted",
        mark=chosen,
        note=f"Drafted: {chosen}. Beyond that, the confidences are those of the backbone's favourites.",
    )
