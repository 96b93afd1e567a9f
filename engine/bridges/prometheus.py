"""Reads acceptance from a server's text at /metrics: counters of vLLM and llama.cpp, gauges of SGLang.

vLLM and llama.cpp count drafts, drafted tokens, kept tokens, and kept tokens by position (from 0), since the start of
the server. SGLang has means of its latest interval only, and no positions.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping

from engine.bridges.imported_line import imported_line
from engine.bridges.step_counts import MOST_DRAFTED, whole
from engine.errors import UserError

COUNTING = {"vllm": "vLLM", "llamacpp": "llama.cpp"}
"""Prefix of an engine's counters -> the engine."""
FAMILY = r"(vllm|llamacpp|sglang):(spec_\w+)"
_SAMPLE = re.compile(rf"{FAMILY}(\{{.*\}})?\s+(\S+)(?:\s+-?\d+)?\s*")
_NAMED = re.compile(FAMILY)
_POSITION = re.compile(r'[{,]\s*position="(\d{1,4})"')
_BEGINNING = re.compile(r"(# (HELP|TYPE) |\w+:\w+[{ ])")
VARIED = "Drafts had different lengths, so the text does not tell how often a position was reached."
SINCE = "Counts go back to the start of the server, over all requests."
GAUGES = (
    "SGLang’s text holds means of its latest interval, and no positions; `return_spec_tokens_details` (or `meta_info` of /generate) in "
    "a request has positions."
)
Samples = Mapping[str, Mapping[int | None, list[float]]]
"""Name of a metric -> position in the draft (None for a metric without positions) -> the values of the metric's
series."""


def is_metrics(text: str) -> bool:
    """Whether the text has Prometheus's format."""
    first = next((line for line in text[:10_000].split("\n") if line.strip()), "")
    return bool(_BEGINNING.match(first))


def lines_of_metrics(text: str, name: str) -> list[dict]:
    """One ``acceptance`` line per engine. Raises UserError, one sentence, if there is none, or a value is broken."""
    samples: dict[str, dict] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for number, line in enumerate(text.split("\n"), 1):
        if not _NAMED.match(line):
            continue
        sample = _SAMPLE.fullmatch(line)
        if sample is None:
            raise UserError(f"Line {number} of {name} is not a sample of a metric.")
        engine, metric, labels, value = sample.groups()
        place = _POSITION.search(labels or "")
        metric = metric.removesuffix("_total")
        values = samples[engine][metric][int(place[1]) if place else None]
        values.append(_value(value, number, name))
    lines = [_line(engine, metrics, name) for engine, metrics in samples.items()]
    lines = [line for line in lines if line is not None]
    if not lines:
        raise UserError(f"{name} has no metric of speculative decoding that is known here.")
    return lines


def _value(text: str, number: int, name: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise UserError(f"Line {number} of {name} has the value {text[:40]}, which is no count.")
    return value


def _line(engine: str, metrics: Samples, name: str) -> dict | None:
    try:
        return _means(metrics, name) if engine == "sglang" else _counts(engine, metrics, name)
    except ValueError as error:
        raise UserError(f"{name} contradicts itself: {error}.") from None


def _counts(engine: str, metrics: Samples, name: str) -> dict | None:
    drafts, drafted, accepted = (
        _sum(metrics.get(f"spec_decode_num_{what}"))
        for what in ("drafts", "draft_tokens", "accepted_tokens")
    )
    series = metrics.get("spec_decode_num_accepted_tokens_per_pos", {})
    kept_at = {place: whole(sum(values)) for place, values in series.items() if place is not None}
    if drafts is None and drafted is None and not kept_at:
        return None
    if sorted(kept_at) != list(range(len(kept_at))) or len(kept_at) > MOST_DRAFTED:
        raise ValueError("its positions are not 0, 1, 2 and so on")
    counts = [kept_at[place] for place in range(len(kept_at))]
    if counts != sorted(counts, reverse=True) or (drafts is not None and counts[:1] > [drafts]):
        raise ValueError("a later position is kept more often than an earlier one")
    if accepted is not None and drafted is not None and accepted > drafted:
        raise ValueError("more tokens are kept than drafted")
    if counts and accepted is not None and sum(counts) != accepted:
        raise ValueError("its positions do not add up to the tokens kept")
    fixed = drafts is not None and drafted == drafts * len(counts)
    reached = [drafts, *counts[:-1]] if fixed and counts else [None] * len(counts)
    positions = [
        {"position": place + 1}
        | ({} if before is None else {"reached": before})
        | {"accepted": accepted_here}
        for place, (before, accepted_here) in enumerate(zip(reached, counts, strict=True))
    ]
    return imported_line(
        COUNTING[engine],
        name,
        SINCE if fixed or not counts else f"{SINCE} {VARIED}",
        positions=positions or None,
        steps=drafts,
        drafted=drafted,
        accepted=accepted,
    )


def _sum(series: Mapping | None) -> int | None:
    return None if series is None else whole(sum(sum(values) for values in series.values()))


def _means(metrics: Samples, name: str) -> dict | None:
    length, share = (_mean(metrics, f"spec_accept_{what}") for what in ("length", "rate"))
    if length is None and share is None:
        return None
    stated = {"mean_with_bonus": length, "kept_share": share}
    if length is not None:
        stated["mean_without_bonus"] = max(0.0, length - 1)
    return imported_line(
        "SGLang",
        name,
        GAUGES,
        stated={key: value for key, value in stated.items() if value is not None},
        steps=_sum(metrics.get("spec_verify_calls")),
    )


def _mean(metrics: Samples, metric: str) -> float | None:
    """The value of a gauge that holds a mean. Raises ValueError if the server's workers report different values,
    because a mean of their means would weight the workers equally."""
    values = {value for values in metrics.get(metric, {}).values() for value in values}
    if len(values) > 1:
        raise ValueError(f"its workers have different values of {metric}; import each alone")
    return values.pop() if values else None
