"""How many tokens of a block are worth verifying: expected tokens of a step divided by its cost, by the number drafted.

DSpark (DeepSeek, 2026): the survival product of the confidences against a table of what steps cost. There the length is the
best of all, given the confidences of the whole block. Those of later places depend on the tokens drawn before them, so a token
could be left out because of itself, and the text would lose the target's law. Here a place is asked before its token is drawn,
and is told of later places only what the block says whatever is drawn.
"""

from collections.abc import Mapping, Sequence

import numpy as np

USUAL_ROW = 0.05
"""Cost of a drafted token where nothing was measured, in steps without one."""


def step_costs(measured: Mapping[int, float], row_cost: float, most: int) -> list[float]:
    """The cost of a step by drafted tokens, 0 to ``most``, in steps that verify none.

    measured: milliseconds by drafted tokens, for some numbers of them; between these and beyond them costs lie on lines.
    row_cost: what each token costs, instead of what was measured; 0: as measured.
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
    )  # a first slope that is all noise says nothing about no draft
    return (costs / costs[0]).tolist()


def expected_tokens(chances: Sequence[float]) -> list[float]:
    """Tokens of a step by drafted tokens, 0 to all, its last one included: 1, 1 + c1, 1 + c1 + c1 c2 ..."""
    return (1 + np.concatenate([[0.0], np.cumsum(np.cumprod(chances))])).tolist()


def worth_more(chances: Sequence[float], drafted: int, costs: Sequence[float]) -> bool:
    """Whether some longer draft has more tokens for its cost than one of ``drafted`` tokens. chances: of all places."""
    tokens = expected_tokens(chances)
    rates = [count / cost for count, cost in zip(tokens, costs, strict=False)]
    return max(rates[drafted:]) > rates[drafted]
