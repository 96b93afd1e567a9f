"""A finished trace against plain decoding, its text and its speed: kept by example, measured when the trace is made."""

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
    """The comparison of a run with plain decoding of the same prompt, seed and sampling.

    comparable: whether one seed means one text, as at temperature 0, or where both rules draw the target's tokens
    themselves. tokens: how many were compared. index: of the first token that differs, or None.
    """
    one, other = (
        [token for step in trace.steps for token in step["output"]["tokens"]]
        for trace in (first, plain)
    )
    both = min(len(one), len(other))
    index = next((at for at in range(both) if one[at] != other[at]), None)
    greedy = first.run["sampling"]["temperature"] == 0
    seeded = all(trace.run["verifier"].get("same_text") for trace in (first, plain))
    return {
        "comparable": bool(both) and (greedy or seeded),
        "alike": index is None,
        "tokens": both,
        "index": index,
    }


def plain_rule(run: Mapping) -> str | None:
    """The rule under which plain decoding can be compared with the run of this run line.

    Where the seed decides the text, whatever is drafted, it is the run's own rule, so that plain decoding draws with
    the same numbers. None: the rule that plain decoding has anyway.
    """
    return run["verifier"]["key"] if run["verifier"].get("same_text") else None


def checked() -> dict[str, dict]:
    """By example: the result of ``compare`` when the trace was made; ``speed`` with the ``machine`` where it was measured,
    None for texts too short."""
    return json.loads(CHECKED.read_text("utf-8")) if CHECKED.exists() else {}


def record_checked(names: list[str]) -> None:
    """Run plain decoding beside these examples, and keep the results of the comparisons."""
    known, kept = examples(), checked()
    for name in names:
        kept[name] = check(name, request_of(known[name]))
        kept = {name: told for name, told in sorted(kept.items()) if name in known}
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
    told = compare(trace, _written(plainly))
    return {**told, "speed": _measured(plainly, request) if _drafts(trace) else None}


def _drafts(trace: Trace) -> bool:
    long = trace.summary["new_tokens"] >= SHORTEST
    return long and trace.run["drafter"]["family"] != "none"


def _measured(plainly: RunRequest, request: RunRequest) -> dict:
    """The run's speed against plain decoding here. The first runs of both are for warming up."""
    _written(plainly), _written(request)
    rounds: list[Round] = []
    while not settled(rounds):
        rounds.append((costs(_written(plainly)), costs(_written(request))))
    told = {**speed(rounds), "machine": _machine()}
    print(
        f"{told['ratio']:.2f} times as fast ({told['low']:.2f} to {told['high']:.2f})", flush=True
    )
    return told


def _written(request: RunRequest) -> Trace:
    run = open_run(request)
    return read_trace(run.header() + "".join(run.steps()) + run.summary())


def _machine() -> str:
    return processor().replace("(R)", "").replace("(TM)", "").removesuffix(" Processor")
