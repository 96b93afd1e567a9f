"""The examples that the page offers, as plain data, and the finished runs with which its tabs open."""

import json
import re
from functools import cache

from app.menu import FAMILIES, plain_pair
from app.settings import LIMITS
from engine.methods import drafters
from presets import (
    examples,
    families,
    opening_example,
    presets,
    race_traces,
    races,
    trace_names,
    trace_text,
)
from presets.conditions import figure
from presets.families import converses, title
from viz.race import joined


def preset_menu() -> dict[str, dict]:
    """Return Watch's examples by name: title, what to look for, and the control values that the example sets. listed:
    whether the example stands in the list; the others belong to method cards. group: the group of the list in which it
    stands. turns: the conversation before its prompt."""
    listed = {preset.name for preset in presets()}
    classes, offered = drafters(), families()
    menu = {}
    for name, example in examples().items():
        if example.drafter not in classes or example.models not in offered:
            continue
        pair = {
            "drafter": example.drafter,
            "options": dict(example.options),
            "verifier": example.verifier or "",
            "rule_options": dict(example.rule_options),
        }
        menu[name] = {
            "title": example.title,
            "look_for": in_numbers(example.look_for, name),
            "listed": name in listed,
            "group": group_of(example.models),
            "family": FAMILIES[classes[example.drafter].family],
            "prompt": example.prompt,
            "turns": list(example.turns),
            "pair": json.dumps(pair),
            "json_schema": example.json_schema or "",
            "python_names": example.python_names,
            "heal": example.heal,
            "models": example.models,
            "temperature": example.temperature,
            "max_new_tokens": min(example.max_new_tokens, LIMITS.new_tokens),
        }
    return menu


def race_menu() -> dict[str, dict]:
    """Return Compare's examples by name: title, what to look for, and the control values that the example sets."""
    classes, offered = drafters(), families()
    menu = {}
    for race in races():
        if race.models not in offered:
            continue
        lanes = [lane for lane in race.lanes if lane.drafter in classes]
        menu[race.name] = {
            "title": race.title,
            "look_for": in_numbers(race.look_for, race.name),
            "listed": True,
            "group": group_of(race.models),
            "prompt": race.prompt,
            "lanes": json.dumps(
                [plain_pair(lane.drafter, lane.options, lane.verifier) for lane in lanes]
            ),
            "models": race.models,
            "temperature": race.temperature,
            "max_new_tokens": min(race.max_new_tokens, LIMITS.new_tokens),
        }
    return menu


def group_of(models: str) -> str:
    """Return the group of a family's examples: the family's title if it converses, otherwise "", the first group."""
    return title(models) if converses(models) else ""


def in_numbers(look_for: str, name: str) -> str:
    """Return ``look_for`` with the names of figures replaced by their values. {tokens_a_step} is a figure of this
    example's finished run, {tokens_a_step of story-cold} one of another example's. See ``presets.conditions``."""

    def worth(found: re.Match) -> str:
        return f"{figure(found['asked'], found['of'] or name):.2f}"

    return re.sub(r"\{(?P<asked>[\w.-]+)(?: of (?P<of>[\w-]+))?\}", worth, look_for)


def opening() -> str:
    """Return the trace that the page shows when it opens; "" if the project has none yet."""
    return trace_text(opening_example()) if trace_names() else ""


def with_other_traces() -> list[str]:
    """Return the names of the examples that have a finished trace, except the opening example."""
    return [name for name in trace_names() if name != opening_example()]


@cache
def race_made_earlier(name: str) -> str:
    """Return the finished race of this example; "" if there is none."""
    if all(race.name != name for race in races()):
        return ""
    return joined(race_traces(name))


def opening_race() -> str:
    """Return the race that Compare shows when it opens; "" if the project has none yet."""
    return race_made_earlier(races()[0].name)
