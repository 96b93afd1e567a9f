"""Estimates speeds on another machine, from the acceptance measured on this machine and the cost of passes on the
other.

Acceptance does not depend on the machine, but times do. The times of the target's passes come from the roofline
(``engine.sizes.roofline``), or from costs that somebody measured on the other machine and pasted. The time of drafting
depends on the drafter. If it uses a draft model, drafting takes the draft model's passes on the other machine. If it
copies from the text, drafting takes as long as on this machine. Otherwise, drafting is assumed to take the same
multiple of a target pass as on this machine; with pasted costs, this also holds for a draft model.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from engine.errors import UserError
from engine.sizes.roofline import pass_milliseconds
from engine.tune.candidates import Candidate
from engine.tune.cost_table import interpolated
from engine.tune.speed_prediction import longest_of
from engine.tune.tuning_request import OtherMachine

PASTED = "the pasted costs"


@dataclass(frozen=True)
class Sizes:
    """The number of parameters of the target, and of the draft model (None without one)."""

    target: int
    draft: int | None = None


def pasted(text: str) -> OtherMachine:
    """The other machine that is described by pasted costs, "rows:milliseconds,rows:milliseconds". Raises UserError for
    any other text."""
    costs = {}
    for pair in text.split(","):
        rows, colon, spent = pair.partition(":")
        try:
            place, value = int(rows), float(spent)
        except ValueError:
            place, value = 0, 0.0
        if not colon or place < 1 or not 0 < value < math.inf:
            raise UserError(
                f'Costs are pairs like "1:20,2:20.5,4:21" of rows and milliseconds, not {pair!r}.'
            )
        costs[place] = value
    if 1 not in costs:
        raise UserError("Costs must hold the pass over one row: 1:MILLISECONDS.")
    return OtherMachine(PASTED, costs=tuple(sorted(costs.items())))


def estimates(
    machine: OtherMachine,
    candidates: Iterable[Candidate],
    plain: Candidate,
    texts: Sequence[int],
    sizes: Sizes,
) -> Iterator[dict]:
    """Yields an ``estimate`` line for each candidate and number of texts. sizes: the sizes of the target and the draft
    model."""
    costs = dict(machine.costs)

    def target_pass(rows: float) -> float | None:
        """The milliseconds of a pass of the target on the other machine. None for more rows than the pasted costs
        have, because the cost of a larger pass does not follow from those of smaller ones."""
        if not costs:
            return pass_milliseconds(sizes.target, rows, machine.bandwidth, machine.arithmetic)
        return interpolated(costs, rows) if rows <= max(costs) else None

    for candidate in candidates:
        for count in texts:
            spent = _step(candidate, plain, count, sizes, machine, target_pass)
            plain_step = target_pass(count)
            if spent is None or plain_step is None:
                continue
            speed, usual = (
                1000 * count * candidate.all.tokens_a_step / spent,
                1000 * count / plain_step,
            )
            yield {
                "kind": "estimate",
                "machine": machine.name,
                **candidate.named,
                "lossless": True,
                "texts": count,
                "predicted": round(speed, 2),
                "checked": None,
                "ratio": round(speed / usual, 3),
                "plain": round(usual, 2),
            }


def _step(candidate, plain, texts, sizes, machine, target_pass) -> float | None:
    """The milliseconds of a step of ``texts`` texts on the other machine; None if the costs of its passes are unknown.
    target_pass: number of rows -> milliseconds, or None."""
    counts, cls = candidate.all, candidate.cls
    verify = 0.0
    for nodes, share in enumerate(longest_of(counts.lengths, texts)):
        if share:
            cost = target_pass(texts * (1 + nodes))
            if cost is None:
                return None
            verify += share * cost
    if not cls.needs and cls.family == "retrieval":
        return verify  # its drafting is work of the host
    here = counts.usual("draft")
    if sizes.draft and counts.draft_passes and not machine.costs:
        drafting = pass_milliseconds(sizes.draft, texts, machine.bandwidth, machine.arithmetic)
        return verify + counts.draft_passes / counts.steps * drafting
    return verify + here / plain.all.usual("verify") * target_pass(texts)
