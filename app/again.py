"""A finished run, made again: with a visitor's changes, or as plain decoding, to measure against.

The run line of a trace says how the run was made. The trace may be a stranger's, so the settings in it are checked like
any other request from a visitor.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from app import fence, live
from app.controls import RANGES, request, text
from app.link import models_of
from app.made import Made, made
from app.menu import offer, options_of, plain_pair
from app.own import own
from app.seats import Job, Seat
from app.settings import LIMITS
from engine.core.sampling import CUTS
from engine.errors import UserError
from engine.run import RunRequest
from engine.trace import Trace, read_run_line, read_trace, to_line
from presets.checked import plain_rule

WHAT_IF, PLAIN = live.HANGING["watch"]
CHANGES = ("pair", "temperature")
BUSY = "Plain decoding was not measured beside it: others are running things here."

Measured = tuple[str, str, tuple[Trace, Trace] | None]
"""State (running | done | skipped), a message, and the traces of the run and of its plain run once both are there."""


def again(run: Mapping, new_tokens: object, session: str = "", **changes: object) -> RunRequest:
    """The request that made this run line, with the changes and with at most ``new_tokens`` tokens.

    changes: control values, named as in the page's FIELDS. Raises UserError.
    """
    drafter, rule, sampling = run["drafter"], run["verifier"], run["sampling"]
    chosen = {
        "drafter": drafter["key"],
        "options": options_of(drafter, offer()),
        "verifier": rule["key"],
        "rule_options": rule["options"],
    }
    values = {
        "prompt": _asked(run),
        "pair": json.dumps(chosen),
        "json_schema": run.get("constraint", {}).get("text"),
        **sampling,
        "max_new_tokens": RANGES["max_new_tokens"].clamp(new_tokens),
        "models": models_of(run, offer()),
    }
    found = request({**values, **changes})
    return replace(
        found,
        models=found.models if values["models"] else own.read(session).paths or found.models,
        messages=run["prompt"].get("messages"),
        stop=run.get("stop_strings", ()),
        cuts=tuple((name, sampling[name]) for name in CUTS if name in sampling),
    )


def _asked(run: Mapping) -> str:
    """The visitor's text: the prompt, or the last turn of a conversation."""
    turns = run["prompt"].get("messages")
    return turns[-1]["content"] if turns else run["prompt"]["text"]


def what_if_job(wish: Mapping[str, object], session: str = "") -> Job:
    """A what-if run. wish: the first trace's run line, how much it wrote, and the values of CHANGES.

    Raises UserError, also where the first trace was made with other models than this page has, because then the
    visitor's change would not be the only difference.
    """
    line = text(wish.get("run"), "The first run")
    if len(line) > LIMITS.trace_bytes:
        raise UserError("The first run's description is too long.")
    first = read_run_line(line)
    (run,) = live.opened(
        [again(first, wish.get("new_tokens"), session, **{c: wish.get(c) for c in CHANGES})]
    )
    ours = read_run_line(run.header())
    same = all(ours["target"][k] == first["target"][k] for k in ("parameters", "vocab_size"))
    if not same or ours["prompt"]["tokens"] != first["prompt"]["tokens"]:
        run.cancel()
        raise UserError(
            "That trace was made with other models; “what if” needs those of this page."
        )
    return run


def plain_job(wish: Mapping[str, object], session: str = "") -> Job:
    """Plain decoding of a run's prompt, under a rule that makes the two texts comparable.

    wish: the run line ("run") and how much the run wrote ("new_tokens").
    """
    first = read_run_line(text(wish.get("run"), "The first run"))
    pair = {**plain_pair("none"), "verifier": plain_rule(first) or ""}
    plainly = again(first, wish.get("new_tokens"), session, pair=json.dumps(pair))
    return live.opened([plainly])[0]


fence.MAKERS |= {WHAT_IF: what_if_job, PLAIN: plain_job}


def measure_plain(session: str, asked: bool = False) -> Iterator[Measured]:
    """Plain decoding of the visitor's finished run, measured after the run and apart from it.

    Writes at most as many tokens as the run, for at most LIMITS.plain_milliseconds, and unless asked for only while
    nobody else runs anything. Yields nothing where there is nothing to measure against. Two events may report the end
    of one run; the second gets the first one's measurement.
    """
    seat, measured = live.seats.get(session, "watch"), live.seats.get(session, PLAIN)
    if not worth_measuring(seat):
        return
    if measured:
        if measured.state == "done":
            yield _outcome(read_trace(seat.text), read_trace(measured.text))
        return
    if live.seats.running() and not asked:
        yield "skipped", BUSY, None
        return
    first = read_trace(seat.text)
    try:
        wish = {"run": to_line(first.run), "new_tokens": first.summary["new_tokens"]}
        make = partial(plain_job, session=session)
        plain = live.seats.put(session, PLAIN, Seat(made(session, PLAIN, make, wish)))
    except UserError as error:
        yield "done", str(error), None
        return
    state = "running"
    for _, state, _ in plain.advance():
        if state == "running":
            yield state, "Plain decoding of the same prompt is being measured.", None
            if plain.job.milliseconds > LIMITS.plain_milliseconds:
                plain.ask("stop")
    if state == "done":
        yield _outcome(first, read_trace(plain.text))


def worth_measuring(seat: Seat | None) -> bool:
    """Whether this is a run that was made here, is over, wrote something, and was not plain."""
    if seat is None or seat.state != "done" or not isinstance(seat.job, Made):
        return False
    first = read_trace(seat.text)
    return first.run["drafter"]["family"] != "none" and first.summary["new_tokens"] > 0


def _outcome(first: Trace, plain: Trace) -> Measured:
    written, spent = plain.summary["new_tokens"], plain.summary["milliseconds"]["total"]
    if not written:
        return (
            "done",
            "Plain decoding was not measured: it was stopped before its first token.",
            None,
        )
    message = (
        f"Plain decoding of the same prompt, measured just now on this machine: "
        f"{written} token{'s' * (written != 1)} in {spent:,.0f} ms."
    )
    return "done", message, (first, plain)
