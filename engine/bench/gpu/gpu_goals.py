"""The goals of the suites ``kernels`` and ``gpu``, computed from their rows."""

from collections.abc import Sequence

from engine.bench.goals import Goal


def kernel_goals(rows: Sequence[dict]) -> list[Goal]:
    """The goals of the suite ``kernels``: attention of a root with 8 and with 64 nodes to a prefix of 32k columns, in
    bf16."""
    few, many = _named(rows, "attention, 9 rows, "), _named(rows, "attention, 65 rows, ")
    return [
        Goal("attention, 8 nodes: time / floor", 1.5, 1.2, few.get("times_floor"), at_most=True),
        Goal("attention, 64 nodes: time / floor", 2.0, 1.4, many.get("times_floor"), at_most=True),
        Goal("SDPA with mask / attention", 2.0, 4.0, _least([few, many], "sdpa_times_ours")),
        Goal("FlexAttention / attention", 1.2, 1.5, _least([few, many], "flex_times_ours")),
    ]


def step_goals(rows: Sequence[dict]) -> list[Goal]:
    """The goals of the suite ``gpu``: a step of an 8B model, and texts of a trained pair of models end to end."""
    one_token, many = (
        _named(rows, "Llama-8B-shaped, 1 token"),
        _named(rows, "Llama-8B-shaped, 64 nodes"),
    )
    host = _named(rows, "Llama-8B-shaped, host")
    chain = [row for row in rows if row["name"].startswith("engine, chain")]
    equal = _named(rows, "greedy")
    share = equal["equal"] / equal["prompts"] if equal.get("prompts") else None
    return [
        Goal("8B: 64 nodes / 1 token", 1.25, 1.1, many.get("times_one_token"), at_most=True),
        Goal("8B: 1 token / weights at copy speed", 1.5, 1.2, one_token.get("times_weights"), True),
        Goal("host time of a step, not launching", 0.05, 0.02, host.get("host_share"), True),
        Goal("chain / best assisted, trained pair", 2.0, 4.0, _least(chain, "times_assisted")),
        Goal("greedy output equal, fp32", 1.0, 1.0, share),
    ]


def _named(rows: Sequence[dict], beginning: str) -> dict:
    return next((row for row in rows if row["name"].startswith(beginning)), {})


def _least(rows: Sequence[dict], key: str) -> float | None:
    """The smallest value of a figure over these rows; None if there are no rows, or if a row lacks the figure."""
    values = [row.get(key) for row in rows]
    return None if not values or None in values else min(values)
