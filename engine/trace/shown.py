"""Picks the probabilities that a step line shows.

When a step is recorded, its models' weights fill the processor's caches, and then the first call of any tensor
operation costs more than its arithmetic. So this module uses NumPy, whose operations start faster than torch's, and
takes single numbers out of the rows.
"""

import math
from collections.abc import Iterator, Sequence
from operator import itemgetter

import numpy as np
from torch import Tensor

from engine.core.step import Step
from engine.core.tree import DraftTree

TOP = 8  # the most probable tokens of a distribution that are shown

NOT_FINITE = "a trace cannot hold a number that is not finite"

Pairs = list[tuple[int, float]]
"""Pairs (token, probability), the most probable first."""


def node_probabilities(tree: DraftTree, shown: Tensor | None) -> list[float | None]:
    """The target's probability p of each node; None for a node for which the target did not compute it. shown: the
    target's distributions, [N+1, V] for the root and N nodes, with NaN in rows that were not computed; None if none
    was computed."""
    if shown is None:
        return [None] * len(tree)
    item = shown.numpy().item
    chances = (
        item(parent + 1, token) for parent, token in zip(tree.parents, tree.tokens, strict=True)
    )
    return [None if math.isnan(p) else short(p) for p in chances]


def distributions(step: Step, shown: Tensor | None) -> Iterator[tuple[int, dict[str, Pairs]]]:
    """Yields the distributions along the walk, the path that the rule followed from the root: pairs of a node (or
    ROOT) and the p, q and residual of the token after it, over the same few tokens. Nodes for which the target
    computed no distribution are skipped. If there is no q or no residual at a node, its list is empty. shown: as in
    ``node_probabilities``."""
    if shown is None:
        return
    p = shown.numpy()
    walk = [place for place in step.verdict.walk if not math.isnan(p.item(place + 1, 0))]
    laws = [step.tree.shown_law(place) for place in walk]
    for place, law, tokens in zip(walk, laws, _worth_showing(step, walk, laws), strict=True):
        residual = step.verdict.residuals.get(place)
        rows = {"p": p[place + 1], "q": _numbers(law), "residual": _numbers(residual)}
        yield place, {name: _pairs(row, tokens) for name, row in rows.items()}


def _numbers(row: Tensor | None) -> np.ndarray | None:
    return None if row is None else row.cpu().numpy()


def _pairs(row: np.ndarray | None, tokens: Sequence[int]) -> Pairs:
    if row is None:
        return []
    pairs = [(token, short(row.item(token))) for token in tokens]
    return sorted(pairs, key=itemgetter(1), reverse=True)


def _worth_showing(
    step: Step, walk: Sequence[int], laws: Sequence[Tensor | None]
) -> list[list[int]]:
    """For each node of the walk, the tokens whose probabilities are shown: the target's likeliest tokens before
    truncation, the draft's likeliest tokens, the tokens drafted after the node, and the final token if it follows the
    node. laws: the draft's distribution after each node, or None."""
    if not walk:
        return []
    tree, last = step.tree, step.verdict.walk[-1]
    logits = step.logits.float().cpu().numpy()
    places = []
    for place, law in zip(walk, laws, strict=True):
        tokens = _favourites(logits[place + 1])
        if law is not None:
            tokens += _favourites(_numbers(law))[: TOP // 2]
        tokens += [tree.tokens[node] for node in tree.children(place)]
        if place == last and step.final is not None:
            tokens.append(step.output[-1])
        places.append(list(dict.fromkeys(tokens)))
    return places


def _favourites(row: np.ndarray) -> list[int]:
    """The indices of the TOP largest numbers of a row, the largest first."""
    first = max(0, len(row) - TOP)
    largest = row.argpartition(first)[first:] if first else np.arange(len(row))
    return largest[np.argsort(-row[largest], kind="stable")].tolist()


def short(value: float) -> float:
    """A number rounded to seven significant digits, which is the precision of float32. Raises ValueError for NaN and
    Infinity."""
    if not math.isfinite(value):
        raise ValueError(NOT_FINITE)
    return float(f"{value:.7g}")


def finite(value: float | None) -> float | None:
    """The number unchanged. Raises ValueError for NaN and Infinity, which no trace may hold."""
    if value is not None and not math.isfinite(value):
        raise ValueError(NOT_FINITE)
    return value
