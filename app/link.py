"""The state of the Watch tab in the page's address.

A visitor's address is a wish, not an order: every value is checked and brought into range, and
what makes no sense is left out.
"""

import json
import math
from collections.abc import Mapping

from app.controls import RANGES
from app.settings import LIMITS

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
    """Control values from an address; {} if it holds none.

    presets, menu, verifiers: what the page offers, by name. menu[drafter]["options"] are that
    drafter's option declarations.
    """
    values: dict[str, object] = {}
    if query.get("preset") in presets:
        values = {**presets[query["preset"]], "preset": query["preset"]}
    if query.get("prompt"):
        values["prompt"] = query["prompt"][: LIMITS.prompt_characters]
    if query.get("drafter") in menu:
        values["drafter"] = query["drafter"]
        values["options"] = no_options(query["drafter"])
    if query.get("verifier") in verifiers:
        values["verifier"] = query["verifier"]
    for short, name in SHORT.items():
        if short in query:
            values[name] = RANGES[name].clamp(query[short])
    if "drafter" in values:
        declared = menu[str(values["drafter"])]["options"]
        given = {
            o["name"]: query[OPTION + o["name"]] for o in declared if OPTION + o["name"] in query
        }
        chosen = {o["name"]: _fit(o, given[o["name"]]) for o in declared if o["name"] in given}
        chosen = {name: value for name, value in chosen.items() if value is not None}
        if chosen:
            values["options"] = json.dumps({"drafter": values["drafter"], "values": chosen})
    return values


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
