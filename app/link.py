"""The state of a tab in the page's address: Watch's, or with tab=compare Compare's.

A visitor's address is a wish, not an order: every value is checked and brought into range, and values that make no
sense are left out.
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
"""Names of the numbers in an address."""
SWITCHES = {"names": "python_names", "heal": "heal"}
"""Names of the switches in an address; 1 is on."""
TABS = ("watch", "compare", "methods", "learn", "tune")


class Names(NamedTuple):
    """The names of a pair's fields in an address; for options, the prefix of their names."""

    drafter: str
    options: str
    verifier: str
    rule_options: str


WATCH = Names("drafter", "o.", "verifier", "r.")


def lane(number: int) -> Names:
    """The names for a lane of Compare, counted from 1."""
    return Names(f"lane{number}", f"lane{number}.", f"rule{number}", f"rule{number}.")


def tab_of(query: Mapping[str, str]) -> str:
    """The tab that the address leads to."""
    return query["tab"] if query.get("tab") in TABS else TABS[0]


def query_of(data: object) -> dict[str, str]:
    """The address that an event of the page's history names; it is as untrusted as any other."""
    query = data.get("query") if isinstance(data, dict) else None
    if not isinstance(query, dict):
        return {}
    return {key: value for key, value in query.items() if isinstance(value, str)}


def alike(one: object, other: object) -> bool:
    """Whether two values of a control mean the same; lists of lanes are compared as data, not as text."""
    try:
        one, other = json.loads(one), json.loads(other)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        pass
    return one == other


def read(
    query: Mapping[str, str], presets: Mapping[str, Mapping], offer: Mapping[str, Mapping]
) -> dict[str, object]:
    """Watch's control values from an address; {} if it holds none.

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
    """The address that asks for this run again, as far as its trace tells.

    The trace may be a stranger's: read the result like any address.
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
    """The embedded family that made this run, if this page has it; otherwise "", the family that writes text."""
    name = run.get("family", "")
    return name if name in offer["models"] else ""


def held_of(run: Mapping) -> dict[str, object]:
    """What the run's text was held to, as control values."""
    constraint = run.get("constraint", {})
    key = constraint.get("key")
    return {
        "json_schema": constraint["text"] if key == "json_schema" else None,
        "python_names": key == "python_names",
        "heal": key == "heal",
    }


def said(run: Mapping) -> str:
    """The visitor's text: the last turn of a conversation, or the prompt with what was taken back of it."""
    prompt, constraint = run["prompt"], run.get("constraint", {})
    if prompt.get("messages"):
        return prompt["messages"][-1]["content"]
    return prompt["text"] + (constraint["text"] if constraint.get("key") == "heal" else "")


def _typed(run: Mapping, offer: Mapping) -> str:
    """The prompt that a visitor would type for this run: of a conversation, where its models do not converse, all of it."""
    whole = run["prompt"].get("messages") and models_of(run, offer) not in offer["chat"]
    return run["prompt"]["text"] if whole else said(run)


def wish_of_race(traces: Iterable[Trace], offer: Mapping[str, Mapping]) -> dict[str, str]:
    """The same for a race. traces: those of its lanes, in their order."""
    traces = list(traces)
    longest = max(traces, key=lambda trace: trace.summary["new_tokens"])
    wish = {"tab": "compare", **wish_of(longest, offer)}
    for number, trace in enumerate(traces, start=1):
        wish |= _wish_of_pair(trace.run, lane(number), offer)
    return wish


def _wish_of_pair(run: Mapping, names: Names, offer: Mapping) -> dict[str, str]:
    """A run's drafter, options, rule ("" where it is the automatic one) and rule options."""
    key, rule = run["drafter"]["key"], run["verifier"]["key"]
    known = offer["drafters"].get(key)
    heat = "warm" if run["sampling"]["temperature"] > 0 else "cold"
    automatic = known is not None and rule == known["automatic"][heat]
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
    """Compare's control values from an address; {} if it holds none.

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
    """Tune's control values from an address; {} if it holds none. kinds: those of the page's prompts, separated by spaces;
    prompts: pasted ones; all=1: every drafter."""
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
    """The pair with the address's changes, as far as they make sense."""
    drafter = offer["drafters"][pair["drafter"]]
    asked = query.get(names.verifier, pair["verifier"])
    rule = asked if asked in drafter["rules"] else ""
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
    """The values that both tabs read alike: the example, the prompt, the numbers."""
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
    """The values of the declared options that the address names, each brought into range."""
    given = {
        o["name"]: _fit(o, query[prefix + o["name"]])
        for o in declared
        if prefix + o["name"] in query
    }
    return {name: value for name, value in given.items() if value is not None}


def _fit(option: Mapping, given: str) -> object:
    """The given text as this option's value, brought into range; None if it makes no sense."""
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
