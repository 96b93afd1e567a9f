"""What a race came to: one row a lane, and whether the lanes agree."""

import json

from engine.trace import Trace

COLUMNS = [
    ["lane", "The drafter."],
    ["tokens/s", "New tokens per second of this lane's compute time."],
    ["× plain", "Speed against plain decoding, measured beside it in this race."],
    ["mean accepted", "New tokens per step; plain decoding is 1.00."],
    ["target calls", "Passes of the target, the reading of the prompt not counted."],
    ["draft ms", "Time spent drafting."],
    ["verify ms", "Time spent in the target's passes."],
    ["total ms", "All of this lane's compute time."],
]


def standings(traces: dict[str, Trace], plain: str) -> dict:
    """The table of a finished race.

    traces: by lane. plain: the lane that the others are measured against.
    """
    base = traces[plain].summary["tokens_per_second"] if plain in traces else None
    rows = []
    for lane, trace in traces.items():
        ms, speed = trace.summary["milliseconds"], trace.summary["tokens_per_second"]
        rows.append(
            [
                lane,
                _number(speed, 0),
                f"{speed / base:.2f}×" if base and speed else "–",
                _number(trace.summary["mean_accepted"], 2),
                str(trace.summary["target_calls"]),
                _number(ms["draft"], 0),
                _number(ms["verify"], 0),
                _number(ms["total"], 0),
            ]
        )
    return {"columns": COLUMNS, "rows": rows, "says": [agreement(traces)]}


def agreement(traces: dict[str, Trace]) -> str:
    """One sentence on whether the exact lanes wrote the same text."""
    exact = {lane: t for lane, t in traces.items() if t.run["verifier"]["lossless"]}
    written = {lane: _tokens(trace) for lane, trace in exact.items()}
    whole = all(t.summary["stop"] != "cancelled" for t in exact.values())
    if not exact or not all(t.run["sampling"]["temperature"] == 0 for t in exact.values()):
        return (
            "Above temperature 0 the lanes may write different texts, "
            "each with exactly the target's distribution."
        )
    shortest = min(len(tokens) for tokens in written.values())
    first = {lane: tokens if whole else tokens[:shortest] for lane, tokens in written.items()}
    reference, *others = first.items()
    for lane, tokens in others:
        if tokens != reference[1]:
            pairs = zip(tokens, reference[1], strict=False)
            at = next((i for i, (a, b) in enumerate(pairs) if a != b), shortest)
            return (
                f"{lane} and {reference[0]} differ from token {at + 1} on: two tokens were so "
                "close that rounding decided between them."
            )
    if whole:
        return f"All {len(exact)} lanes wrote the same {len(reference[1])} tokens, token for token."
    return f"All {len(exact)} lanes agree on the {shortest} tokens that every lane has written."


def _tokens(trace: Trace) -> list[int]:
    return [token for step in trace.steps for token in step["output"]["tokens"]]


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def as_json(table: dict | None) -> str:
    return json.dumps(table) if table else ""
