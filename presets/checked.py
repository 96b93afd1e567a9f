"""Compares the text and the speed of finished traces with plain decoding, and keeps the results by example."""

import json
from collections.abc import Mapping

from engine.run import RunRequest, open_run
from engine.sizes.this_machine import processor
from engine.trace import Trace, read_trace
from presets import HERE, examples, trace_text
from presets.recording import request_of
from presets.speed import SHORTEST, Round, costs, settled, speed

CHECKED = HERE / "traces" / "checked.json"


def compare(first: Trace, plain: Trace) -> dict:
    """Return the comparison of a run's text with that of plain decoding of the same prompt, seed and sampling.

    comparable: whether both texts must be equal if the run is lossless: at temperature 0, or if both rules draw the
    target's tokens themselves. alike: whether they are equal. tokens: how many tokens were compared. index: the first
    token that differs, or None.
    """
    written, plain_tokens = (
        [token for step in trace.steps for token in step["output"]["tokens"]]
        for trace in (first, plain)
    )
    count = min(len(written), len(plain_tokens))
    index = next((at for at in range(count) if written[at] != plain_tokens[at]), None)
    greedy = first.run["sampling"]["temperature"] == 0
    seeded = all(trace.run["verifier"].get("same_text") for trace in (first, plain))
    return {
        "comparable": bool(count) and (greedy or seeded),
        "alike": index is None,
        "tokens": count,
        "index": index,
    }


def plain_rule(run: Mapping) -> str | None:
    """Return the rule under which plain decoding can be compared with the run of this run line.

    Under some rules the seed alone decides the text, for any draft. Then it is the run's own rule, so that plain
    decoding draws with the same numbers. None: plain decoding's automatic rule.
    """
    return run["verifier"]["key"] if run["verifier"].get("same_text") else None


def checked() -> dict[str, dict]:
    """Return, by example, the result of ``compare`` when its trace was made, with ``speed``: the result of
    ``presets.speed.speed`` and the ``machine`` of the measurement; None for a short text, or plain decoding."""
    return json.loads(CHECKED.read_text("utf-8")) if CHECKED.exists() else {}


def record_checked(names: list[str]) -> None:
    """Compare these examples with plain decoding on this machine, and write the results to CHECKED."""
    by_name, kept = examples(), checked()
    for name in names:
        kept[name] = check(name, request_of(by_name[name]))
        kept = {name: result for name, result in sorted(kept.items()) if name in by_name}
        CHECKED.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")


def check(name: str, request: RunRequest) -> dict:
    trace = read_trace(trace_text(name))
    plainly = RunRequest(
        prompt=request.prompt,
        messages=request.messages,
        models=request.models,
        drafter="none",
        verifier=plain_rule(trace.run),
        json_schema=request.json_schema,
        python_names=request.python_names,
        heal=request.heal,
        **trace.run["sampling"],
        max_new_tokens=trace.summary["new_tokens"],
    )
    result = compare(trace, _written(plainly))
    return {**result, "speed": _measured(plainly, request) if _drafts(trace) else None}


def _drafts(trace: Trace) -> bool:
    long = trace.summary["new_tokens"] >= SHORTEST
    return long and trace.run["drafter"]["family"] != "none"


def _measured(plainly: RunRequest, request: RunRequest) -> dict:
    """Measure the run's speed against plain decoding on this machine, and return it. The first run of each is a
    warm-up."""
    _written(plainly), _written(request)
    rounds: list[Round] = []
    while not settled(rounds):
        rounds.append((costs(_written(plainly)), costs(_written(request))))
    result = {**speed(rounds), "machine": _machine()}
    print(
        f"{result['ratio']:.2f} times as fast ({result['low']:.2f} to {result['high']:.2f})",
        flush=True,
    )
    return result


def _written(request: RunRequest) -> Trace:
    run = open_run(request)
    return read_trace(run.header() + "".join(run.steps()) + run.summary())


def _machine() -> str:
    return processor().replace("(R)", "").replace("(TM)", "").removesuffix(" Processor")
