"""Meters: functions that compute exhibits (values shown beside a step) from a recorded step, for any drafter and any
rule.

To add a meter, write a function and list it in ``METERS``.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import chain

import numpy as np

from engine.core.exhibits import Exhibit, Gauge, Table
from engine.core.sampling import Sampling
from engine.core.schemes import EXCLUSIVE, IID, Scheme, scheme_of
from engine.core.step import Step
from engine.core.tree import ROOT
from engine.rules import Verifier
from engine.rules.expected_acceptance import chain_keeps, rejection_keeps
from engine.rules.transport import transport_bound
from engine.trace.price import shortfalls

Meter = Callable[[Step, Sampling, Verifier | None], Iterable[Exhibit]]
"""The type of a meter: (step, sampling of the run, rule of the run) -> exhibits with ``meter=True``."""

MOST_DRAWS = 8  # the most draws under a node for which the bound is computed
PRICE_SHOWN = 16.0  # bits at the end of the price's scale


def acceptance_at_the_root(
    step: Step, sampling: Sampling, rule: Verifier | None
) -> Iterable[Exhibit]:
    """Yields the probability that this rule accepts one of the drafted tokens right after the root (the last token of
    the text), beside the highest probability that any exact rule can have.

    Shown only if several drafted tokens follow the root and they were drawn in a way for which there are formulas; see
    ``engine.rules.transport``.
    """
    draws = step.tree.draws.get(ROOT, ())
    if sampling.greedy or step.p is None or len(draws) < 2:
        return
    scheme, p = scheme_of(step.tree, draws), step.p[0]
    if scheme is None or not _within_reach(scheme) or bool(p[0].isnan()):
        return
    if step.index % _every(scheme):
        return
    # converted to double precision once, for all three sums below
    p, scheme = p.double().cpu(), replace(scheme, q=scheme.q.double().cpu())
    most = transport_bound(p, scheme)
    chance = None if rule is None else rule.expected_acceptance(p, scheme)
    chance = None if chance is None else min(chance, most)  # the two are rounded differently
    name = "this rule" if rule is None else rule.title or rule.key
    title = "Chance that a draft after the last token is kept"
    note = (
        "Before the drafts are drawn. The mark is the bound of this way of sampling: no rule that "
        "keeps the target’s distribution passes it."
    )
    yield Gauge(title, chance, mark=most, meter=True, note=note)
    rows = [["drafts", _words(scheme)], [name, chance], ["bound of this way of sampling", most]]
    if not scheme.fixed:
        rows.append(["one draft alone", rejection_keeps(p, Scheme(IID, scheme.q, 1))])
    yield Table("How far from the optimum", ("", "value"), rows, meter=True)


def _every(scheme: Scheme) -> int:
    """Every how many steps to measure, so that recording takes at most a tenth of the run's time. With three or more
    draws without replacement, the measurement takes longer with each further draw."""
    return scheme.draws + 1 if scheme.kind == EXCLUSIVE and scheme.draws > 2 else 2


def _within_reach(scheme: Scheme) -> bool:
    exclusive = scheme.kind == EXCLUSIVE
    return scheme.draws <= MOST_DRAWS and not (
        exclusive and np.count_nonzero(scheme.q.cpu().numpy()) < scheme.draws
    )


def _words(scheme: Scheme) -> str:
    how = "without replacement" if scheme.kind == EXCLUSIVE else "independent"
    drawn = f"{scheme.draws} drawn" + (f", {how}" if scheme.draws > 1 else "")
    return f"{len(scheme.fixed)} fixed, {drawn}" if scheme.fixed else drawn


def kept_of_the_chain(step: Step, sampling: Sampling, rule: Verifier | None) -> Iterable[Exhibit]:
    """Yields three expected numbers of accepted tokens of a drafted chain: if it is judged token by token, if it is
    judged as a block, and the upper bound for any exact rule."""
    tree, start = step.tree, step.tree.forced
    draws = [tree.draws[parent] for parent in tree.parents[start:]]
    if (
        sampling.greedy
        or step.p is None
        or not draws
        or any(len(siblings) > 1 for siblings in draws)
    ):
        return
    ratios = []
    for (drawn,) in draws:
        token = tree.tokens[drawn.node]
        q = 1.0 if drawn.kind == "one_hot" else float(tree.laws[drawn.law][token])
        ratios.append(float(step.p[tree.parents[drawn.node] + 1, token]) / (q or 1.0))
    if any(map(math.isnan, ratios)):
        return  # a row that the target did not compute
    names = ("token by token (rejection)", "as a block", "bound of each depth by itself")
    note = (
        "Each token counts with its chance to be kept, given the tokens up to it. No exact rule keeps more of a chain on "
        "average than the block does. Where tokens were picked, not drawn, all three are the same."
    )
    rows = list(zip(names, chain_keeps(ratios), strict=True))
    yield Table(
        "Expected accepted tokens of this chain", ("", "tokens"), rows, meter=True, note=note
    )


def price_of_the_step(step: Step, sampling: Sampling, rule: Verifier | None) -> Iterable[Exhibit]:
    """Yields how many bits less likely the accepted tokens are, under the target, than the target's likeliest tokens
    at their positions. Only for lossy rules."""
    kept = step.verdict.accepted
    if rule is None or rule.exact_kinds or step.logits is None or not kept:
        return
    rows = [step.tree.parents[node] + 1 for node in kept]
    below = shortfalls(step.logits[rows], [step.tree.tokens[node] for node in kept])
    value = float(below.sum())
    if not math.isnan(value):  # NaN comes from a row that the target did not compute
        title = "Price of the step"
        note = "How much less likely, by the target, the kept tokens are than its favourites in their places."
        yield Gauge(
            title, min(value, PRICE_SHOWN), maximum=PRICE_SHOWN, unit="bits", meter=True, note=note
        )


METERS: tuple[Meter, ...] = (acceptance_at_the_root, kept_of_the_chain, price_of_the_step)


def measured(step: Step, sampling: Sampling, rule: Verifier | None) -> list[Exhibit]:
    """The exhibits of all meters for one step."""
    return list(chain.from_iterable(meter(step, sampling, rule) for meter in METERS))
