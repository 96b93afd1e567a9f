"""Predicts a candidate's tokens per second for several texts at a time, from its accepted tokens and the cost of
passes, and names the main reason why it is not faster.

A step of t texts consists of one pass of the target over all t texts, and of drafting, judging and committing for each
text. Drafting takes t times as long as for one text. Judging and committing a single row of a text that shares its pass
takes next to nothing, so only the time that they take beyond that of plain decoding counts. The pass has the rows of
all drafts together, so its cost is taken at their mean. Where passes are padded, every text has as many rows as the longest of the t
drafts needs. The chances of that length follow from the lengths of the drafts counted so far: P(longest <= n) =
P(length <= n)^t.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise

from engine.tune.candidates import Candidate
from engine.tune.cost_table import CostTable
from engine.tune.kept_counts import Counts

GOOD_SHARE, GOOD_DRAFT = 0.8, 0.05
"""What ``why`` assumes of a good draft: GOOD_SHARE is the share of its tokens that are accepted, GOOD_DRAFT the cost
of drafting one token, as a share of a pass of the target over one row."""
PAYS = 1.02
"""From this multiple of plain decoding's speed on, drafting pays. Smaller gains are within the noise."""
TOO_GOOD = 1.05
"""A speedup above this multiple of the tokens per step is not believed. A lossless step cannot be faster than plain
decoding by more than the number of tokens that it writes, so plain decoding was measured while the machine was
busy."""


@dataclass(frozen=True)
class Speed:
    """A candidate's tokens per second, over all texts written at a time. checked: measured in a run beside plain
    decoding; None without such a run. plain: plain decoding's tokens per second in that run; without a run, predicted
    like the candidate's. predicted: the predicted multiple of plain decoding's speed, times ``plain``, because the
    machine may be busier in the run than it was when the passes were timed."""

    predicted: float
    plain: float
    checked: float | None = None

    @property
    def ratio(self) -> float:
        return (self.predicted if self.checked is None else self.checked) / self.plain


def step_milliseconds(counts: Counts, plain: Counts, texts: int, costs: CostTable) -> float | None:
    """The milliseconds of a step of ``texts`` texts; None if the cost of its pass over several texts was not measured.
    plain: plain decoding's counts."""
    if texts == 1:
        return counts.usual()
    lengths = counts.lengths
    if costs.longest:
        passes = [
            (share, costs.milliseconds(1 + nodes, texts))
            for nodes, share in enumerate(longest_of(lengths, texts))
            if share
        ]
    else:
        mean = sum(nodes * count for nodes, count in enumerate(lengths)) / sum(lengths)
        passes = [(1.0, costs.milliseconds(1 + mean, texts))]
    if any(cost is None for _, cost in passes):
        return None
    joint = sum(share * cost for share, cost in passes)
    settling = counts.usual("judge", "commit") - plain.usual("judge", "commit")
    return texts * (counts.usual("draft") + max(0.0, settling)) + joint


def longest_of(lengths: list[int], texts: int) -> list[float]:
    """The chances that the longest of several drafts has 0, 1, 2, ... nodes, as a list. texts: the number of drafts.
    lengths: lengths[n] is how many of the drafts counted so far have n nodes."""
    total = sum(lengths)
    below = [0.0, *((count / total) ** texts for count in accumulate(lengths))]
    return [high - low for low, high in pairwise(below)]


def tokens_a_second(
    candidate: Candidate, plain: Candidate, texts: int, costs: CostTable
) -> float | None:
    """The candidate's predicted tokens per second for ``texts`` texts at a time. None if it has no counts, if a cost
    was not measured, or if its drafter cannot share passes with other texts. plain: plain decoding."""
    if not candidate.counts or (texts > 1 and candidate.cls.uses_target):
        return None
    spent = step_milliseconds(candidate.all, plain.all, texts, costs)
    return spent and 1000 * texts * candidate.all.tokens_a_step / spent


def speed_of(candidate: Candidate, plain: Candidate, texts: int, costs: CostTable) -> Speed | None:
    """The candidate's predicted speed beside plain decoding's. None if a cost or a count is missing, or if the gain
    for several texts is more than a step allows (``TOO_GOOD``)."""
    predicted, usual = (tokens_a_second(each, plain, texts, costs) for each in (candidate, plain))
    if texts == 1 and candidate.counts:
        tokens, spent = candidate.beside
        usual = 1000 * tokens / spent
    if not predicted or not usual:
        return None
    if texts > 1 and predicted / usual > TOO_GOOD * candidate.all.tokens_a_step:
        return None
    return Speed(predicted, usual)


def why(candidate: Candidate, plain: Candidate, ratio: float) -> dict:
    """The main reason why a candidate is not faster on one text: {"cause", "sentence"}. ratio: its speed as a multiple
    of plain decoding's, as the answer says it.

    Three changes are imagined, one at a time: a draft that costs as little as a good one (``GOOD_DRAFT``), as many
    accepted tokens as a good draft has (``GOOD_SHARE``), and a pass over the draft that costs no more than a pass over
    one row. The change that makes the step fastest per token names the cause.
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
    if ratio < PAYS:
        return {"cause": cause, "sentence": told[cause]}
    # no milliseconds here: the ratio may come from a run at another moment, and would contradict them
    held = {
        "draft too slow": f"drafting takes {draft / spent:.0%} of a step.",
        "too seldom kept": told[cause][0].lower() + told[cause][1:],
        "verification not free": (
            f"a pass over the draft takes longer than one over a single row, by {(verify - single) / spent:.0%} of a step."
        ),
    }
    took = f"A step writes {tokens:.2f} tokens in the time in which plain decoding writes {tokens / ratio:.2f}."
    return {"cause": "pays", "sentence": f"{took} What holds it back most: {held[cause]}"}
