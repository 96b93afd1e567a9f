"""The state of a tab in the page's address: Watch's, or with tab=compare that of Compare.

A visitor's address is a wish, not an order: every value is checked and brought into range, and
what makes no sense is left out.
"""

import json
import math
from collections.abc import Iterable, Mapping

from app.controls import RANGES
from app.settings import LIMITS
from engine.trace import Trace

SHORT = {"t": "temperature", "k": "top_k", "p": "top_p", "seed": "seed", "n": "max_new_tokens"}
"""Names of the numbers in an address."""
OPTION = "o."
"""What stands before an option's name in an address."""


def no_options(drafter: str) -> str:
    """The option controls of a drafter, all at their defaults."""
    return json.dumps({"drafter": drafter, "values": {}})


def read(
    query: Mapping[str, str],
    presets: Mapping[str, Mapping],
    menu: Mapping[str, Mapping],
    verifiers: Mapping[str, Mapping],
) -> dict[str, object]:
    """Watch's control values from an address; {} if it holds none.

    presets, menu, verifiers: what the page offers, by name. menu[drafter]["options"] are that
    drafter's option declarations.
    """
    if names_compare(query):
        return {}
    values = _example(query, presets)
    if query.get("drafter") in menu:
        values["drafter"] = query["drafter"]
        values["options"] = no_options(query["drafter"])
    if query.get("verifier") in verifiers:
        values["verifier"] = query["verifier"]
    if "drafter" in values:
        chosen = _options(query, OPTION, menu[str(values["drafter"])]["options"])
        if chosen:
            values["options"] = json.dumps({"drafter": values["drafter"], "values": chosen})
    return values


def wish_of(trace: Trace, menu: Mapping[str, Mapping]) -> dict[str, str]:
    """The address that wishes for this run again, as far as its trace tells.

    Its trace may be a stranger's: read it like any address.
    """
    stop, written = trace.summary["stop"], trace.summary["new_tokens"]
    usual = RANGES["max_new_tokens"].default
    numbers = {**trace.run["sampling"]}
    numbers["max_new_tokens"] = written if stop == "length" else max(written, usual)
    key, chosen, rule = _drafting(trace.run, menu)
    return {
        "prompt": trace.run["prompt"]["text"],
        "drafter": key,
        **{OPTION + name: value for name, value in chosen.items()},
        "verifier": rule,
        **{short: str(numbers[name]) for short, name in SHORT.items()},
    }


def wish_of_race(traces: Iterable[Trace], menu: Mapping[str, Mapping]) -> dict[str, str]:
    """The same for a race: the lanes' traces, in their order."""
    traces = list(traces)
    longest = max(traces, key=lambda trace: trace.summary["new_tokens"])
    wish = {"tab": "compare", **wish_of(longest, menu)}
    for number, trace in enumerate(traces, start=1):
        key, chosen, rule = _drafting(trace.run, menu)
        wish |= {f"lane{number}": key, f"rule{number}": rule}
        wish |= {f"lane{number}.{name}": value for name, value in chosen.items()}
    return wish


def _drafting(run: Mapping, menu: Mapping[str, Mapping]) -> tuple[str, dict[str, str], str]:
    """A run's drafter, its options, and its rule, "" where that is the automatic one."""
    key, rule = run["drafter"]["key"], run["verifier"]["key"]
    warm = menu[key]["verifier"] if key in menu else ""
    automatic = "greedy" if run["sampling"]["temperature"] == 0 else warm
    chosen = {name: str(value) for name, value in run["drafter"]["options"].items()}
    return key, chosen, "" if rule == automatic else rule


def names_compare(query: Mapping[str, str]) -> bool:
    """Whether the address leads to Compare."""
    return query.get("tab") == "compare"


def read_race(
    query: Mapping[str, str],
    races: Mapping[str, Mapping],
    menu: Mapping[str, Mapping],
    rules: Mapping[str, Mapping],
) -> dict[str, object]:
    """Compare's control values from an address; {} if it holds none.

    A lane is lane1=chain with its options as lane1.length=4 and its rule as rule1=sampler_match,
    and so on up to the limit. rules[drafter]: the rules that may judge this drafter, by key.
    """
    if not names_compare(query):
        return {}
    values = _example(query, races)
    lanes = []
    for number in range(1, LIMITS.lanes + 1):
        key = query.get(f"lane{number}")
        if key in menu:
            chosen = _options(query, f"lane{number}.", menu[key]["options"])
            rule = query.get(f"rule{number}", "")
            rule = rule if rule in rules[key] else ""
            lanes.append({"drafter": key, "values": chosen, "verifier": rule})
    if len(lanes) >= 2:
        values["lanes"] = json.dumps(lanes)
    return values


def _example(query: Mapping[str, str], presets: Mapping[str, Mapping]) -> dict[str, object]:
    """What both tabs read alike: the example, the prompt, the numbers."""
    values: dict[str, object] = {}
    if query.get("preset") in presets:
        values = {**presets[query["preset"]], "preset": query["preset"]}
    if query.get("prompt"):
        values["prompt"] = query["prompt"][: LIMITS.prompt_characters]
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
