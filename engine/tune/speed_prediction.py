"""Predicts a candidate's tokens a second for several texts at a time, from its accepted tokens and the cost of
passes, and says why the candidate is no faster.

A step of t texts takes t times what one text's drafting and judging take, and one pass of the target, which is as long as the
longest of the t drafts asks for. That length follows from the drafts that were seen: P(longest <= n) = P(length <= n)^t.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise

from engine.tune.candidates import Candidate
from engine.tune.cost_table import CostTable
from engine.tune.kept_counts import Counts

GOOD_SHARE, GOOD_DRAFT = 0.8, 0.05
"""A good draft keeps this share of its tokens, and each of them costs this part of a pass of the target."""
PAYS = 1.02
"""Times the speed of plain decoding from which on a draft pays; less is noise."""


@dataclass(frozen=True)
class Speed:
    """Tokens a second of all texts together. checked: of a run beside plain decoding; None where there was none. plain: of plain
    decoding in the same run, or predicted as well."""

    predicted: float
    plain: float
    checked: float | None = None

    @property
    def ratio(self) -> float:
        return (self.predicted if self.checked is None else self.checked) / self.plain


def step_milliseconds(counts: Counts, texts: int, costs: CostTable) -> float | None:
    """None where the pass of so many texts was not measured."""
    if texts == 1:
        return counts.usual()
    passes = [
        (share, costs.milliseconds(1 + nodes, texts))
        for nodes, share in enumerate(longest_of(counts.lengths, texts))
        if share
    ]
    if any(cost is None for _, cost in passes):
        return None
    joint = sum(share * cost for share, cost in passes)
    return texts * counts.usual("draft", "judge", "commit") + joint


def longest_of(lengths: list[int], texts: int) -> list[float]:
    """The chances of each length of the longest of so many drafts. lengths: how many drafts have each length."""
    total = sum(lengths)
    below = [0.0, *((count / total) ** texts for count in accumulate(lengths))]
    return [high - low for low, high in pairwise(below)]


def tokens_a_second(candidate: Candidate, texts: int, costs: CostTable) -> float | None:
    """None where it cannot be told: nothing was counted, or such passes cannot be shared."""
    if not candidate.counts or (texts > 1 and candidate.cls.uses_target):
        return None
    spent = step_milliseconds(candidate.all, texts, costs)
    return spent and 1000 * texts * candidate.all.tokens_a_step / spent


def speed_of(candidate: Candidate, plain: Candidate, texts: int, costs: CostTable) -> Speed | None:
    """The predicted speed; None if a cost or a count is missing."""
    predicted, usual = (tokens_a_second(each, texts, costs) for each in (candidate, plain))
    if texts == 1 and candidate.counts:
        tokens, spent = candidate.beside
        usual = 1000 * tokens / spent
    return Speed(predicted, usual) if predicted and usual else None


def why(candidate: Candidate, plain: Candidate, ratio: float) -> dict:
    """The main reason why a candidate is not faster on one text: {"cause", "sentence"}.

    Three runs are imagined: with a draft as cheap as a good one, with as many tokens kept as of a good one, and with a pass over
    many rows that costs no more than one over a single row. The cause is what gains most.
    """
    counts, plain_token = candidate.all, candidate.beside[1] / candidate.beside[0]
    draft, verify = counts.usual("draft"), counts.usual("verify")
    single = plain_token * plain.all.usual("verify") / plain.all.usual()
    length = max(1.0, counts.drafted_a_step)
    tokens, spent = counts.tokens_a_step, counts.usual()
    depth = round(min(length, len(counts.positions) or 1))
    good = sum(GOOD_SHARE**place for place in range(1 + depth))
    cheap = min(draft, GOOD_DRAFT * length * single)
    gains = {
        "draft too slow": tokens * plain_token / (spent - draft + cheap),
        "too seldom kept": max(tokens, good) * plain_token / spent,
        "verification not free": tokens * plain_token / (spent - max(0.0, verify - single)),
    }
    cause = max(gains, key=gains.__getitem__)
    share = counts.kept_share
    told = {
        "draft too slow": f"Drafting takes {draft:.1f} ms a step, and a pass of the target over one row {single:.1f} ms.",
        "too seldom kept": (
            f"Of the drafted tokens that are looked at, {share or 0:.0%} are kept, so a step writes {tokens:.2f} tokens."
        ),
        "verification not free": (
            f"A pass over the draft takes {verify:.1f} ms, and one over a single row {single:.1f} ms: more rows cost more here."
        ),
    }
    if ratio >= PAYS:
        took = f"A step writes {tokens:.2f} tokens in {spent:.1f} ms; plain decoding writes one in {plain_token:.1f} ms."
        held = told[cause][0].lower() + told[cause][1:]
        return {"cause": "pays", "sentence": f"{took} What holds it back most: {held}"}
    return {"cause": cause, "sentence": told[cause]}
