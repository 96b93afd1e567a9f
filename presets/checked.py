"""Whether a finished trace has the text of plain decoding: kept by example, measured when the trace is made."""

import json
from collections.abc import Mapping

from engine.run import RunRequest, open_run
from engine.trace import Trace, read_trace
from presets import HERE, examples, trace_file
from presets.recording import request_of

CHECKED = HERE / "traces" / "checked.json"


def compare(first: Trace, plain: Trace) -> dict:
    """The comparison of a run with plain decoding of the same prompt, seed and sampling.

    comparable: whether one seed means one text, as at temperature 0, or where both rules draw the target's tokens
    themselves. tokens: how many were compared. index: of the first token that differs, or None. ratio: plain decoding's
    milliseconds per token over the run's; None where either wrote nothing.
    """
    one, other = (
        [token for step in trace.steps for token in step["output"]["tokens"]]
        for trace in (first, plain)
    )
    both = min(len(one), len(other))
    index = next((at for at in range(both) if one[at] != other[at]), None)
    greedy = first.run["sampling"]["temperature"] == 0
    seeded = all(trace.run["verifier"].get("same_text") for trace in (first, plain))
    spent = [trace.summary["milliseconds"]["total"] for trace in (first, plain)]
    ratio = spent[1] / len(other) / (spent[0] / len(one)) if one and other and spent[0] else None
    return {
        "comparable": bool(both) and (greedy or seeded),
        "alike": index is None,
        "tokens": both,
        "index": index,
        "ratio": ratio,
    }


def plain_rule(run: Mapping) -> str | None:
    """The rule under which plain decoding can be compared with the run of this run line.

    Where the seed decides the text, whatever is drafted, it is the run's own rule, so that plain decoding draws with
    the same numbers. None: the rule that plain decoding has anyway.
    """
    return run["verifier"]["key"] if run["verifier"].get("same_text") else None


def checked() -> dict[str, dict]:
    """By example: the result of ``compare`` when the trace was made, without the machine's speed."""
    return json.loads(CHECKED.read_text("utf-8")) if CHECKED.exists() else {}


def record_checked(names: list[str]) -> None:
    """Run plain decoding beside these examples, and keep the results of the comparisons."""
    known = examples()
    found = {**checked(), **{name: check(name, request_of(known[name])) for name in names}}
    kept = {name: told for name, told in sorted(found.items()) if name in known}
    CHECKED.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")


def check(name: str, request: RunRequest) -> dict:
    trace = read_trace(trace_file(name).read_text("utf-8"))
    run = open_run(
        RunRequest(
            prompt=request.prompt,
            messages=request.messages,
            models=request.models,
            drafter="none",
            verifier=plain_rule(trace.run),
            json_schema=request.json_schema,
            **trace.run["sampling"],
            max_new_tokens=trace.summary["new_tokens"],
        )
    )
    plain = read_trace(run.header() + "".join(run.steps()) + run.summary())
    return {**compare(trace, plain), "ratio": None}
