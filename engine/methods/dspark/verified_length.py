"""How many tokens of a block are worth verifying: the number for which a step has the most expected tokens per cost.

DSpark (DeepSeek, 2026): the products of the confidences are set against a table of what steps cost. In the paper the
length is the best of all lengths, given the confidences of the whole block. But the confidences of later positions
depend on the tokens drawn before them, so a token could be left out because of its own value, and the text would not
follow the target's law. Here it is decided before a token is drawn whether it is drafted, and for later positions
confidences are used that do not depend on any draw.
"""

from collections.abc import Mapping, Sequence

import numpy as np

USUAL_ROW = 0.05
"""The cost of a drafted token that is assumed where no times were measured. The unit is the cost of a step without a
draft."""


def step_costs(measured: Mapping[int, float], row_cost: float, most: int) -> list[float]:
    """Return the costs of steps with 0 to ``most`` drafted tokens, in units of the cost of a step without a draft.

    measured: number of drafted tokens -> milliseconds of a step, for some numbers; the costs of other numbers are
    interpolated or extrapolated linearly. row_cost: the cost of each drafted token, used in place of ``measured``; 0
    means that ``measured`` is used.
    """
    sizes = sorted(measured)
    if row_cost or len(sizes) < 2:
        return [1 + (row_cost or USUAL_ROW) * count for count in range(most + 1)]
    times = np.maximum.accumulate([measured[size] for size in sizes])
    slopes = np.diff(times) / np.diff(sizes)
    counts = np.arange(most + 1)
    costs = np.interp(counts, sizes, times)
    costs += np.minimum(counts - sizes[0], 0) * slopes[0]
    costs += np.maximum(counts - sizes[-1], 0) * slopes[-1]
    costs = np.maximum(
        costs, times[0] / 2
    )  # a first slope that is only noise must not make a step without a draft too cheap
    return (costs / costs[0]).tolist()


def expected_tokens(chances: Sequence[float]) -> list[float]:
    """Return the expected number of tokens that a step writes, for drafts of 0 to all tokens: 1, 1 + c1, 1 + c1 + c1 c2
    ... The 1 is the target's own token at the end. chances: c1, c2 ..., each the chance that a drafted token is kept if
    all tokens before it are."""
    return (1 + np.concatenate([[0.0], np.cumsum(np.cumprod(chances))])).tolist()


def worth_more(chances: Sequence[float], drafted: int, costs: Sequence[float]) -> bool:
    """Whether some longer draft would have more expected tokens per cost than a draft of ``drafted`` tokens. chances:
    the chance at each position of the block. costs: as from ``step_costs``."""
    tokens = expected_tokens(chances)
    rates = [count / cost for count, cost in zip(tokens, costs, strict=False)]
    return max(rates[drafted:]) > rates[drafted]
