"""Reads the directives of a lesson: blocks of TOML whose first line names an instrument, a question or a claim.

Each directive is checked, and answered from the finished runs. The data for the browser contains these results, so a
newly made run also changes the lesson.
"""

import tomllib
from collections.abc import Callable

from engine.core.options import Option
from engine.errors import UserError, unknown
from engine.methods import drafters
from presets import cards, examples, races
from presets.checked import checked
from presets.checking import check
from presets.conditions import Missing, figure, finished, holds
from presets.lessons.expert_passes import expert_passes
from presets.lessons.moments import moment
from presets.lessons.numbers import written
from presets.lessons.passes import passes, prices
from presets.lessons.questions import question
from presets.lessons.text import line
from presets.machines import machines

NUMBER = (int, float)
SAME_TEXT = "same text as plain decoding"
"""A condition that is not on a figure: the texts were compared when the run was made."""
VIEWS = ("tree", "icicle")
PARTS = ("tree", "text", "timeline", "why", "method")
SLIDERS = {
    "temperature": {"label": "Temperature", "low": 0, "high": 2, "step": 0.1},
    "seed": {"label": "Seed", "low": 0, "high": 20, "step": 1},
}
LABELS = {"length": "Longest draft, in tokens"}
MOST = 16  # the largest value of a slider for an option of the drafter
RULES = ("exact", "always", "compare", "plain redraw")


def read(info: str, content: str) -> dict:
    """Return one directive as plain data: {"kind": its name, ...}. info: the first line. Raises UserError, one
    sentence."""
    kind = info.strip()
    if kind not in KINDS:
        raise unknown("directive", kind, KINDS)
    try:
        table = tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"The directive {kind} is not TOML: {error}.") from None
    return {"kind": kind, **KINDS[kind](f"The directive {kind}", table)}


def _trace(place: str, given: dict) -> dict:
    """Return the instrument that shows a step of a finished run."""
    fields = {"example": str, "step": (str, int), "view": str, "parts": list, "play": bool}
    _checked(place, given, {**fields, **SHOWN}, ("example",))
    name = _example(given["example"])
    step, parts = given.get("step", "first draft"), given.get("parts", ["tree", "why", "timeline"])
    _among(place, "view", [given.get("view", "tree")], VIEWS)
    _among(place, "part", parts, PARTS)
    trace = finished(name)[""]
    if isinstance(step, int) and not 1 <= step <= len(trace.steps):
        raise UserError(
            f"{place}: the run {name} has {len(trace.steps)} steps, and no step {step}."
        )
    index, node = (step - 1, None) if isinstance(step, int) else moment(step, trace)
    return {**given, **_shown(given), "parts": parts, "step": index, "node": node}


def _race(place: str, given: dict) -> dict:
    """Return the instrument that shows a finished race."""
    _checked(place, given, {"example": str, **SHOWN}, ("example",))
    if all(race.name != given["example"] for race in races()):
        raise Missing(str(unknown("race", given["example"], [race.name for race in races()])))
    finished(given["example"])
    return {**given, **_shown(given)}


def _live(place: str, given: dict) -> dict:
    """Return the instrument for a run that readers start themselves. Its controls are the prompt, the temperature, the
    seed, and the drafter's options that are whole numbers."""
    fields = {"example": str, "controls": list, "options": dict, **SHOWN}
    _checked(place, given, fields, ("example", "controls"))
    name = _example(given["example"])
    own, ran = examples()[name], finished(name)[""].run["drafter"]
    numbers = [option for option in drafters()[own.drafter].options if option.type == "int"]
    sliders = {**SLIDERS, **{option.name: _slider(option) for option in numbers}}
    _among(place, "control", given["controls"], ("prompt", *sliders))
    settings = {"temperature": own.temperature, "seed": 0, "prompt": own.prompt}
    options = {**ran["options"], **given.get("options", {})}
    chosen = {key: max(1, options[key]) for key in given["controls"] if key not in settings}
    return {
        **given,
        **_shown(given),
        "start": {key: settings[key] for key in given["controls"] if key in settings},
        "options": {**given.get("options", {}), **chosen},
        "sliders": {key: sliders[key] for key in given["controls"] if key in sliders},
    }


def _slider(option: Option) -> dict:
    """Return the slider for this option. It begins at 1, because 0 would leave the number to the drafter."""
    label = LABELS.get(option.name) or option.label or option.name.replace("_", " ").capitalize()
    return {"label": label, "low": 1, "high": min(MOST, int(option.maximum or MOST)), "step": 1}


def _rule(place: str, given: dict) -> dict:
    """Return the instrument with a rule and its coins: p and q over a few words, and the rules to try."""
    fields = {"words": list, "p": list, "q": list, "rules": list, **SHOWN}
    _checked(place, given, fields, ("words", "p", "q", "rules"))
    _among(place, "rule", given["rules"], RULES)
    count = len(given["words"])
    for letter in "pq":
        law = given[letter]
        sums = len(law) == count >= 2 and all(isinstance(v, NUMBER) and v >= 0 for v in law)
        if not sums or abs(sum(law) - 1) > 1e-6:
            raise UserError(f"{place}: {letter} must be {count} numbers that sum to 1.")
    return {**given, **_shown(given)}


def _length(place: str, given: dict) -> dict:
    """Return the instrument on how long to draft. It starts with the acceptance rate and the costs of a run or a
    lane."""
    fields = {"example": str, "lane": str, "plain": str, "longest": int, "speed": bool, **SHOWN}
    _checked(place, given, fields, ("example",))
    lanes, lane = finished(given["example"]), given.get("lane", "")
    if lane not in lanes:
        raise unknown("lane", lane, lanes)
    plain = lanes.get("none") or ("plain" in given and finished(_example(given["plain"])).get(""))
    if not plain:
        raise UserError(f"{place} needs plain, a run of plain decoding on the same target.")
    if plain.run["target"]["name"] != lanes[lane].run["target"]["name"]:
        raise UserError(f"{place}: plain decoding and {given['example']} have different targets.")
    return {
        "longest": 16,
        "speed": True,
        **given,
        **_shown(given),
        "start": prices(lanes[lane], plain),
    }


def _passes(place: str, given: dict) -> dict:
    """Return the instrument on the cost of a pass by its rows, in finished races and by the data sheets of other
    machines."""
    _checked(place, given, {"races": list, "machine": str, **SHOWN}, ("races",))
    _among(place, "race", given["races"], tuple(race.name for race in races()))
    costs = passes(tuple(given["races"]))
    if "machine" in given:
        _among(
            place,
            "machine",
            [given["machine"]],
            tuple(sheet["name"] for sheet in costs["machines"]),
        )
    return {**given, **_shown(given), **costs}


def _rounds(place: str, given: dict) -> dict:
    """Return the instrument on the rounds of a server that reads a long prompt beside other texts, on a machine of the
    data sheets."""
    _checked(place, given, {"machine": str, **SHOWN}, ("machine",))
    by_name = {machine["name"]: machine for machine in machines()}
    _among(place, "machine", [given["machine"]], tuple(by_name))
    return {**given, **_shown(given), "machine": by_name[given["machine"]]}


def _experts(place: str, given: dict) -> dict:
    """Return the instrument on experts: which experts the rows of a pass need, what the pass costs, and the draft
    length that pays, on two targets."""
    _checked(place, given, {"target": str, "alpha": NUMBER, **SHOWN}, ("target",))
    _among(place, "target", [given["target"]], _names(expert_passes()))
    return {**given, **_shown(given), **expert_passes()}


def _names(stage: dict) -> tuple[str, ...]:
    return tuple(target["name"] for target in stage["targets"])


def _figure(place: str, given: dict) -> dict:
    """Return the instrument that shows the figure of a method's card."""
    _checked(place, given, {"method": str, **SHOWN}, ("method",))
    drawn = {key: card.figure for key, card in cards().items() if card.figure}
    if given["method"] not in drawn:
        raise Missing(str(unknown("method with a figure", given["method"], drawn)))
    return {**given, **_shown(given), "exhibits": drawn[given["method"]]}


def _claim(place: str, given: dict) -> dict:
    """Return a claim: a sentence about a finished run, and in ``holds`` the conditions that make it true, each with its
    result."""
    _checked(
        place, given, {"text": str, "example": str, "holds": list}, ("text", "example", "holds")
    )
    if not given["holds"]:
        raise UserError(f"{place} has no condition.")
    results = [held(condition, given["example"]) for condition in given["holds"]]
    return {**given, "text": line(given["text"]), "holds": results}


def held(condition: str, example: str) -> dict:
    """Return {"condition", "true": whether it is true of the example's run, "is": the value in that run}."""
    if condition == SAME_TEXT:
        compared = checked().get(example, {"tokens": 0, "comparable": False, "alike": False})
        true = compared["comparable"] and compared["alike"]
        return {"condition": condition, "true": true, "is": f"{compared['tokens']} tokens compared"}
    true = holds(condition, example)
    return {
        "condition": condition,
        "true": true,
        "is": written(figure(condition.split(" ")[0], example)),
    }


def check_setting(stage: dict | None, wanted: dict) -> None:
    """Raise UserError if a question needs a setting that the instrument on its screen does not have. wanted: setting ->
    value."""
    if not wanted:
        return
    settings = SETTINGS[stage["kind"]]
    _among("a question’s with", "setting", list(wanted), tuple(settings))
    for name, value in wanted.items():
        if not isinstance(value, settings[name]):
            raise UserError(f"a question’s with: {value!r} is no {name}.")
    if "rule" in wanted:
        _among("a question’s with", "rule", [wanted["rule"]], tuple(stage["rules"]))
    if "machine" in wanted:
        sheets = tuple(machine["name"] for machine in stage["machines"])
        _among("a question’s with", "machine", [wanted["machine"]], sheets)
    if "target" in wanted:
        _among("a question’s with", "target", [wanted["target"]], _names(stage))


SETTINGS: dict[str, dict] = {
    "rule": {"rule": str, "p": list, "q": list},
    "length": dict.fromkeys(("alpha", "cost", "k"), NUMBER),
    "passes": {"machine": str, "rows": int},
    "rounds": {"rows": int, "part": int},
    "experts": {"target": str, "k": int, "alpha": NUMBER},
}
"""Instrument that can judge a question -> the settings that readers can change on it, each with its type."""
SHOWN = {"caption": str, "after": bool}
"""Fields of every instrument. after: the instrument is covered until the screen's first question is answered."""
INSTRUMENTS = (
    "trace",
    "race",
    "live",
    "rule",
    "length",
    "passes",
    "rounds",
    "experts",
    "figure",
)
READERS = (_trace, _race, _live, _rule, _length, _passes, _rounds, _experts, _figure)
KINDS: dict[str, Callable[[str, dict], dict]] = {
    **dict(zip(INSTRUMENTS, READERS, strict=True)),
    "predict": question,
    "claim": _claim,
}


def _shown(given: dict) -> dict:
    return {"caption": line(given["caption"])} if "caption" in given else {}


def _checked(place: str, given: dict, fields: dict, required: tuple[str, ...]) -> None:
    check(place, given, fields, required=required)


def _example(name: str) -> str:
    if name not in examples():
        raise Missing(str(unknown("example", name, examples())))
    return name


def _among(place: str, noun: str, given: list, known: tuple[str, ...]) -> None:
    for name in given:
        if name not in known:
            raise UserError(
                f"{place} has an unknown {noun} {name!r}; known are: {', '.join(known)}."
            )
