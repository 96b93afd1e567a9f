"""Reads the state of a tab from the page's address, and writes the state of a run or race as an address.

The address names the tab, tab=compare or tab=tune; Watch needs no name. Every value in it is checked and brought into
range, and invalid values are left out.
"""

import json
import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from app.controls import RANGES
from app.menu import options_of, plain_pair
from app.settings import LIMITS
from engine.trace import Trace

SHORT = {"t": "temperature", "k": "top_k", "p": "top_p", "seed": "seed", "n": "max_new_tokens"}
"""The numbers in an address: name in the address -> name of the control."""
SWITCHES = {"names": "python_names", "heal": "heal"}
"""The switches in an address, where 1 is on: name in the address -> name of the control."""
TABS = ("watch", "compare", "methods", "learn", "tune")


class Names(NamedTuple):
    """The names of a pair's fields in an address. options and rule_options are prefixes of the names of single
    options."""

    drafter: str
    options: str
    verifier: str
    rule_options: str


WATCH = Names("drafter", "o.", "verifier", "r.")


def lane(number: int) -> Names:
    """Return the names in an address for a lane of Compare. number: from 1."""
    return Names(f"lane{number}", f"lane{number}.", f"rule{number}", f"rule{number}.")


def tab_of(query: Mapping[str, str]) -> str:
    """Return the tab that the address leads to: Watch unless it names another."""
    return query["tab"] if query.get("tab") in TABS else TABS[0]


def query_of(data: object) -> dict[str, str]:
    """Return the query of the address in a history event of the page, its text values only. It is untrusted."""
    query = data.get("query") if isinstance(data, dict) else None
    if not isinstance(query, dict):
        return {}
    return {key: value for key, value in query.items() if isinstance(value, str)}


def alike(one: object, other: object) -> bool:
    """Return whether two values of a control mean the same. JSON, such as a list of lanes, is compared as data."""
    try:
        one, other = json.loads(one), json.loads(other)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        pass
    return one == other


def read(
    query: Mapping[str, str], presets: Mapping[str, Mapping], offer: Mapping[str, Mapping]
) -> dict[str, object]:
    """Return Watch's control values from an address; {} if it holds none.

    presets: the examples by name. offer: the result of ``menu.offer``.
    """
    if tab_of(query) != "watch":
        return {}
    values = _example(query, presets, offer)
    pair = values.get("pair")
    if query.get(WATCH.drafter) in offer["drafters"]:
        pair = json.dumps(plain_pair(query[WATCH.drafter]))
    elif pair is None and WATCH.drafter not in query and WATCH.verifier in query:
        pair = next(iter(presets.values()))["pair"]
    if pair is not None:
        wished = _wished_pair(json.loads(pair), query, WATCH, _temperature(values), offer)
        values["pair"] = json.dumps(wished)
    return values


def wish_of(trace: Trace, offer: Mapping[str, Mapping]) -> dict[str, str]:
    """Return the address of a run with the settings that this trace records.

    The trace may be a stranger's: read the result with ``read``, like any address.
    """
    stop, written, held = trace.summary["stop"], trace.summary["new_tokens"], held_of(trace.run)
    usual = RANGES["max_new_tokens"].default
    numbers = {**trace.run["sampling"]}
    numbers["max_new_tokens"] = written if stop == "length" else max(written, usual)
    return {
        "prompt": _typed(trace.run, offer),
        **_wish_of_pair(trace.run, WATCH, offer),
        "schema": held["json_schema"] or "",
        **{short: "1" for short, name in SWITCHES.items() if held[name]},
        "models": models_of(trace.run, offer),
        **{short: str(numbers[name]) for short, name in SHORT.items()},
    }


def models_of(run: Mapping, offer: Mapping) -> str:
    """Return the embedded family that made this run, if this page has it; otherwise "", the family that writes text."""
    name = run.get("family", "")
    return name if name in offer["models"] else ""


def held_of(run: Mapping) -> dict[str, object]:
    """Return the constraint on the run's text as control values: a JSON schema, Python names, or token healing."""
    constraint = run.get("constraint", {})
    key = constraint.get("key")
    return {
        "json_schema": constraint["text"] if key == "json_schema" else None,
        "python_names": key == "python_names",
        "heal": key == "heal",
    }


def said(run: Mapping) -> str:
    """Return the visitor's text: the last turn of a conversation, or the prompt with the text that healing took
    back."""
    prompt, constraint = run["prompt"], run.get("constraint", {})
    if prompt.get("messages"):
        return prompt["messages"][-1]["content"]
    return prompt["text"] + (constraint["text"] if constraint.get("key") == "heal" else "")


def _typed(run: Mapping, offer: Mapping) -> str:
    """Return the prompt that a visitor would type for this run. It is the whole conversation, if the run has one and
    its models do not converse on this page."""
    whole = run["prompt"].get("messages") and models_of(run, offer) not in offer["chat"]
    return run["prompt"]["text"] if whole else said(run)


def wish_of_race(traces: Iterable[Trace], offer: Mapping[str, Mapping]) -> dict[str, str]:
    """Return the address of a race with the settings in these traces. traces: the lanes' traces, in their order."""
    traces = list(traces)
    longest = max(traces, key=lambda trace: trace.summary["new_tokens"])
    wish = {"tab": "compare", **wish_of(longest, offer)}
    for number, trace in enumerate(traces, start=1):
        wish |= _wish_of_pair(trace.run, lane(number), offer)
    return wish


def _wish_of_pair(run: Mapping, names: Names, offer: Mapping) -> dict[str, str]:
    """Return address values for a run's drafter, options, rule ("" if it is the automatic one) and rule options."""
    key, rule = run["drafter"]["key"], run["verifier"]["key"]
    entry = offer["drafters"].get(key)
    heat = "warm" if run["sampling"]["temperature"] > 0 else "cold"
    automatic = entry is not None and rule == entry["automatic"][heat]
    options, rule_options = options_of(run["drafter"], offer), run["verifier"]["options"]
    return {
        names.drafter: key,
        **{names.options + name: str(value) for name, value in options.items()},
        names.verifier: "" if automatic else rule,
        **{names.rule_options + name: str(value) for name, value in rule_options.items()},
    }


def read_race(
    query: Mapping[str, str], races: Mapping[str, Mapping], offer: Mapping[str, Mapping]
) -> dict[str, object]:
    """Return Compare's control values from an address; {} if it holds none.

    A lane is lane1=chain with its options as lane1.length=4, its rule as rule1=sampler_match and
    that rule's options as rule1.NAME=VALUE, and so on up to the limit.
    """
    if tab_of(query) != "compare":
        return {}
    values = _example(query, races, offer)
    every = [lane(number) for number in range(1, LIMITS.lanes + 1)]
    lanes = [
        _wished_pair(plain_pair(query[names.drafter]), query, names, _temperature(values), offer)
        for names in every
        if query.get(names.drafter) in offer["drafters"]
    ]
    if len(lanes) >= 2:
        values["lanes"] = json.dumps(lanes)
    return values


def read_tune(query: Mapping[str, str], offer: Mapping[str, Mapping]) -> dict[str, object]:
    """Return Tune's control values from an address; {} if it holds none.

    In the address, kinds names kinds of the page's prompts, separated by spaces; prompts is a pasted text of prompts;
    all=1 stands for every drafter.
    """
    if tab_of(query) != "tune":
        return {}
    values = _example(query, {}, offer)
    if query.get("prompts"):
        text = query["prompts"][: LIMITS.prompt_characters]
        values["prompts"] = {"source": "pasted", "text": text}
    elif query.get("kinds"):
        values["prompts"] = {"source": "ours", "kinds": query["kinds"][:200].split()}
    if query.get("all") == "1":
        values["prompts"] = {**values.get("prompts", {}), "all": True}
    return values


def _temperature(values: Mapping[str, object]) -> float:
    return float(values.get("temperature", RANGES["temperature"].default))  # type: ignore[arg-type]


def _wished_pair(
    pair: Mapping, query: Mapping[str, str], names: Names, temperature: float, offer: Mapping
) -> dict:
    """Return the pair with the valid changes that the address names."""
    drafter = offer["drafters"][pair["drafter"]]
    verifier = query.get(names.verifier, pair["verifier"])
    rule = verifier if verifier in drafter["rules"] else ""
    judge = rule or drafter["automatic"]["warm" if temperature > 0 else "cold"]
    chosen = _options(query, names.options, drafter["options"])
    of_rule = _options(query, names.rule_options, offer["rules"][judge]["options"])
    return {
        "drafter": pair["drafter"],
        "options": chosen or pair["options"],
        "verifier": rule,
        "rule_options": of_rule or pair["rule_options"],
    }


def _example(
    query: Mapping[str, str], presets: Mapping[str, Mapping], offer: Mapping[str, Mapping]
) -> dict[str, object]:
    """Return the values that all tabs read alike: example, prompt, models, JSON schema, switches and numbers."""
    values: dict[str, object] = {}
    if query.get("preset") in presets:
        values = {**presets[query["preset"]], "preset": query["preset"]}
    if query.get("prompt"):
        values["prompt"] = query["prompt"][: LIMITS.prompt_characters]
    if query.get("models") in offer["models"]:
        values["models"] = query["models"]
    if query.get("schema"):
        values["json_schema"] = query["schema"][: LIMITS.schema_characters]
    values |= {name: True for short, name in SWITCHES.items() if query.get(short) == "1"}
    for short, name in SHORT.items():
        if short in query:
            values[name] = RANGES[name].clamp(query[short])
    return values


def _options(query: Mapping[str, str], prefix: str, declared: list[Mapping]) -> dict[str, object]:
    """Return the declared options that the address names: name -> value, brought into range."""
    values = {
        o["name"]: _fit(o, query[prefix + o["name"]])
        for o in declared
        if prefix + o["name"] in query
    }
    return {name: value for name, value in values.items() if value is not None}


def _fit(option: Mapping, given: str) -> object:
    """Return this text as a value of the option, brought into range; None if it is invalid."""
    if option["type"] == "bool":
        return {"true": True, "false": False}.get(given.lower())
    if option["type"] == "choice":
        return given if given in option["choices"] else None
    try:
        number = float(given)
    except ValueError:
        return None
    if math.isnan(number):
        return None
    if option["minimum"] is not None:
        number = min(max(number, option["minimum"]), option["maximum"])
    return round(number) if option["type"] == "int" else number
