"""What the page offers: drafters, verifiers and examples, as plain data."""

import json

from app.settings import LIMITS
from engine.drafters import drafters
from engine.sampling import Sampling
from engine.verifiers import verifiers
from presets import opening_trace, presets, trace_files

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
    """By key: label, summary, and the options as declared."""
    return {
        key: {
            "label": f"{key} · {FAMILIES[cls.family]}",
            "summary": cls.summary,
            "options": [option.to_dict() for option in cls.options],
        }
        for key, cls in drafters().items()
    }


def verifier_menu(drafter: str) -> dict[str, dict]:
    """By key, "" for the drafter's own choice: label, and whether the pair is exact."""
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
    own = f"drafter's own choice ({cls.default_verifier})"
    return {"": {"label": own, "exact": menu[cls.default_verifier]["exact"]}, **menu}


def preset_menu() -> dict[str, dict]:
    """By name: title, what to look for, and the control values it sets."""
    known = drafters()
    menu = {}
    for preset in presets():
        if preset.drafter not in known:
            continue
        options = {"drafter": preset.drafter, "values": dict(preset.options)}
        menu[preset.name] = {
            "title": preset.title,
            "look_for": preset.look_for,
            "prompt": preset.prompt,
            "drafter": preset.drafter,
            "options": json.dumps(options),
            "verifier": "",
            "temperature": preset.temperature,
            "max_new_tokens": min(preset.max_new_tokens, LIMITS.new_tokens),
        }
    return menu


def opening() -> str:
    """The trace on the screen when the page opens; "" where the project has none yet."""
    return opening_trace().read_text(encoding="utf-8") if trace_files() else ""
