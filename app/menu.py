"""What the page offers: drafters, verifiers and examples, as plain data."""

import json
from functools import cache

from app.settings import LIMITS
from engine.drafters import drafters
from engine.sampling import Sampling
from engine.verifiers import verifiers
from presets import opening_trace, presets, race_files, races, trace_files
from viz.race import joined

FAMILIES = {
    "none": "plain decoding",
    "chain": "chain",
    "tree": "tree",
    "retrieval": "retrieval",
    "diffusion": "diffusion",
    "heads": "extra heads",
    "self": "self-speculation",
}


def drafter_menu() -> dict[str, dict]:
    """By key: label, summary, its own rule above temperature 0, and the options as declared.

    An option is marked "auto" where its 0 means what pays on this machine.
    """
    return {
        key: {
            "label": f"{cls.title} ({key})",
            "summary": cls.summary,
            "verifier": cls.default_verifier,
            "options": [
                {**option.to_dict(), "auto": option.name == cls.size_option}
                for option in cls.options
            ],
        }
        for key, cls in drafters().items()
    }


def verifier_menu(drafter: str) -> dict[str, dict]:
    """By key, "" for greedy at temperature 0, else the drafter's own: label, whether the pair is exact."""
    cls = drafters()[drafter]
    menu = {}
    for key, rule in verifiers().items():
        cold = rule.lossless_with(cls.kinds(Sampling()))
        warm = not rule.only_greedy and rule.lossless_with(cls.kinds(Sampling(temperature=1.0)))
        if rule.only_greedy:
            word = "exact, at temperature 0 only"
        elif cold and warm:
            word = "exact"
        elif cold:
            word = "exact at temperature 0, lossy above"
        else:
            word = "lossy: may change the text"
        menu[key] = {"label": f"{key} · {word}", "exact": cold, "summary": rule.summary}
    return {"": {"label": "automatic", "exact": menu[cls.default_verifier]["exact"]}, **menu}


def rule_menu() -> dict[str, dict[str, str]]:
    """For every drafter the rules that may judge it, by key, each with its label."""
    return {
        drafter: {key: entry["label"] for key, entry in verifier_menu(drafter).items()}
        for drafter in drafters()
    }


def rules_in_words() -> list:
    """The rules by name, each with its explanation: the parts of a sentence for ``parts.lead``."""
    parts: list = ["What they do: "]
    for key, rule in verifiers().items():
        parts += [[key, f"{rule.summary[0].upper()}{rule.summary[1:]}."], ", "]
    return [*parts[:-1], "."]


def preset_menu() -> dict[str, dict]:
    """By name: title, what to look for, its drafters, and the control values it sets."""
    known = drafters()
    menu = {}
    for preset in presets():
        if preset.drafter not in known:
            continue
        options = {"drafter": preset.drafter, "values": dict(preset.options)}
        menu[preset.name] = {
            "title": preset.title,
            "look_for": preset.look_for,
            "family": FAMILIES[known[preset.drafter].family],
            "prompt": preset.prompt,
            "drafter": preset.drafter,
            "drafters": preset.drafter,
            "options": json.dumps(options),
            "verifier": "",
            "temperature": preset.temperature,
            "max_new_tokens": min(preset.max_new_tokens, LIMITS.new_tokens),
        }
    return menu


def race_menu() -> dict[str, dict]:
    """Compare's examples by name: title, what to look for, its drafters, and the control values it sets."""
    known = drafters()
    menu = {}
    for race in races():
        lanes = [key for key in race.lanes if key in known]
        menu[race.name] = {
            "title": race.title,
            "look_for": race.look_for,
            "prompt": race.prompt,
            "drafters": ",".join(lanes),
            "lanes": json.dumps([{"drafter": key, "values": {}} for key in lanes]),
            "max_new_tokens": min(race.max_new_tokens, LIMITS.new_tokens),
        }
    return menu


def opening() -> str:
    """The trace on the screen when the page opens; "" where the project has none yet."""
    return opening_trace().read_text(encoding="utf-8") if trace_files() else ""


def with_other_traces() -> list[str]:
    """The examples that have a trace of their own, the opening one apart."""
    return [name for name, path in trace_files().items() if path != opening_trace()]


@cache
def opening_race() -> str:
    """The race on the screen when Compare opens; "" where the project has none yet."""
    return joined({lane: path.read_text("utf-8") for lane, path in race_files().items()})
