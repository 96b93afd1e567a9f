"""Builds the request that repeats a finished run: unchanged, or by plain decoding as a baseline.

The run line of a trace says how the run was made. Its values are checked like any other request from a visitor.
"""

import json
from collections.abc import Mapping
from dataclasses import replace

from app.controls import RANGES, request
from app.link import held_of, models_of, said
from app.menu import offer, options_of, plain_pair
from app.own import own
from engine.core.sampling import CUTS
from engine.run import RunRequest
from presets.checked import plain_rule


def again(run: Mapping, new_tokens: object, session: str = "", **changes: object) -> RunRequest:
    """Return the request that repeats the run of this run line, with ``changes`` and at most ``new_tokens`` new tokens.

    changes: control values, by their names in ``app.controls.FIELDS``. Raises UserError.
    """
    drafter, rule, sampling = run["drafter"], run["verifier"], run["sampling"]
    chosen = {
        "drafter": drafter["key"],
        "options": options_of(drafter, offer()),
        "verifier": rule["key"],
        "rule_options": rule["options"],
    }
    values = {
        "prompt": said(run),
        "pair": json.dumps(chosen),
        **held_of(run),
        **sampling,
        "max_new_tokens": RANGES["max_new_tokens"].clamp(new_tokens),
        "models": models_of(run, offer()),
    }
    base = request({**values, **changes})
    return replace(
        base,
        models=base.models if values["models"] else own.read(session).paths or base.models,
        messages=run["prompt"].get("messages"),
        stop=run.get("stop_strings", ()),
        cuts=tuple((name, sampling[name]) for name in CUTS if name in sampling),
    )


def plainly(run: Mapping, new_tokens: object, session: str = "") -> RunRequest:
    """Return the request for plain decoding of this run's prompt, under a rule that makes both texts comparable."""
    pair = {**plain_pair("none"), "verifier": plain_rule(run) or ""}
    return again(run, new_tokens, session, pair=json.dumps(pair))
