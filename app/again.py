"""A finished run, made again: as it was, with a visitor's changes, or as plain decoding, to measure against.

The run line of a trace says how the run was made. The trace may be a stranger's, so the settings in it are checked like
any other request from a visitor.
"""

import json
from collections.abc import Mapping
from dataclasses import replace

from app import fence, live
from app.controls import RANGES, request, text
from app.link import models_of
from app.menu import offer, options_of, plain_pair
from app.own import own
from app.seats import Job
from app.settings import LIMITS
from engine.core.sampling import CUTS
from engine.errors import UserError
from engine.run import RunRequest
from engine.trace import read_run_line
from presets.checked import plain_rule

(WHAT_IF,) = live.HANGING["watch"]
CHANGES = ("pair", "temperature")


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


def plainly(run: Mapping, new_tokens: object, session: str = "") -> RunRequest:
    """Plain decoding of this run's prompt, under a rule that makes the two texts comparable."""
    pair = {**plain_pair("none"), "verifier": plain_rule(run) or ""}
    return again(run, new_tokens, session, pair=json.dumps(pair))


fence.MAKERS |= {WHAT_IF: what_if_job}
