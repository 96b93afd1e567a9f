"""Does a sample come from this distribution? A test with a stated error rate.

An exactness test says how often it may raise a false alarm (over all its comparisons together:
divide by their number) and how small a bias it still finds (``power``). Seeds are fixed, so a
test that passes once passes always.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping

import numpy as np
from scipy.stats import chi2, chi2_contingency, ncx2

SMALLEST_EXPECTED = 8.0  # rarer outcomes are counted together, so that chi-square holds


def p_value(sample: Iterable[Hashable], law: Mapping[Hashable, float]) -> float:
    """Return the chance of a sample at least this far from the law, by the G-test.

    sample: outcomes. law: the probability of each outcome; it may leave impossible outcomes out. An impossible outcome
    in the sample makes the result 0.
    """
    counts = Counter(sample)
    total = sum(counts.values())
    if any(law.get(outcome, 0.0) <= 0 for outcome in counts):
        return 0.0
    observed, expected = _pooled(law, counts, total)
    if len(expected) < 2:
        return 1.0
    seen = observed > 0
    statistic = 2 * float((observed[seen] * np.log(observed[seen] / expected[seen])).sum())
    return float(chi2.sf(statistic, len(expected) - 1))


def same_law(one: Iterable[Hashable], other: Iterable[Hashable]) -> float:
    """Return the chance of two samples at least this different if their laws are the same, by the G-test on the
    outcomes that are not rare."""
    counts = [Counter(one), Counter(other)]
    often = [outcome for outcome, count in (counts[0] + counts[1]).items() if count >= 16]
    table = [
        [*(count[key] for key in often), count.total() - sum(count[key] for key in often)]
        for count in counts
    ]
    columns = [column for column in zip(*table, strict=True) if sum(column)]
    return float(chi2_contingency(np.array(columns), lambda_="log-likelihood").pvalue)


def power(
    law: Mapping[Hashable, float],
    biased: Mapping[Hashable, float],
    samples: int,
    false_alarm: float,
) -> float:
    """Return the chance that ``samples`` outcomes of the biased law are told apart from the law."""
    observed, expected = _pooled(law, {k: v * samples for k, v in biased.items()}, samples)
    if len(expected) < 2:
        return 0.0
    distance = float(((observed - expected) ** 2 / expected).sum())
    limit = chi2.isf(false_alarm, len(expected) - 1)
    return float(ncx2.sf(limit, len(expected) - 1, distance))


def _pooled(
    law: Mapping[Hashable, float], counts: Mapping[Hashable, float], total: float
) -> tuple[np.ndarray, np.ndarray]:
    outcomes = sorted((k for k in law if law[k] > 0), key=lambda k: law[k])
    mass = sum(law[k] for k in outcomes)
    expected = np.array([law[k] / mass * total for k in outcomes])
    observed = np.array([counts.get(k, 0) for k in outcomes], dtype=float)
    rare = int(np.searchsorted(expected, SMALLEST_EXPECTED))
    if rare and expected[:rare].sum() < SMALLEST_EXPECTED:
        rare = min(rare + 1, len(expected))
    if rare > 1:
        expected = np.append(expected[rare:], expected[:rare].sum())
        observed = np.append(observed[rare:], observed[:rare].sum())
    return observed, expected
