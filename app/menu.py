"""Lists the drafters, rules and examples that the page offers, as plain data."""

from collections.abc import Collection, Mapping

from app.settings import model_paths
from engine.bridges.exporting import ENGINES
from engine.catalogue import lossless
from engine.core.options import Option
from engine.core.sampling import Sampling
from engine.methods import drafters
from engine.parts.drafts import KIND, ROLE, drafts_among
from engine.parts.kinds import kind_of
from engine.parts.loading import ModelPaths, half_precision
from engine.rules import Verifier, verifiers
from presets import (
    families,
)
from presets.families import converses, title
from presets.machines import machines

FAMILIES = {
    "none": "plain decoding",
    "chain": "chain",
    "tree": "tree",
    "retrieval": "retrieval",
    "diffusion": "diffusion",
    "heads": "extra heads",
    "self": "self-speculation",
    "decoder": "other decoders",
    "yours": "Yours",
}
"""The families of drafters in words, in the order in which they are listed."""

FIRST = ("auto", "chain", "dyspec", "prompt_lookup", "eagle")
"""The drafters that the menu lists first, under "To begin with", and not again in their families."""

COLD, WARM = Sampling(), Sampling(temperature=1.0)


def offer() -> dict:
    """Return all data that the browser needs to draw the controls of a drafter and its rule; it is sent once."""
    return {
        "families": FAMILIES,
        "first": FIRST,
        "drafters": drafter_menu(),
        "rules": rule_menu(),
        "models": [name for name in families() if name],
        "chat": [name for name in families() if converses(name)],
        "machines": [machine["name"] for machine in machines()],
        "engines": [(key, title) for key, (title, _) in ENGINES.items()],
    }


def drafter_menu() -> dict[str, dict]:
    """Return, by key, what each drafter is, whether it can run here, its options, and the rules that may judge it.

    An option is marked "auto" if its value 0 means the size that pays on this machine. missing: why the drafter cannot
    run here, "" if it can. elsewhere: name of another embedded family -> why the drafter cannot run with that family.
    rules: key of a rule -> words that say whether the rule is lossless with this drafter. automatic: the rule that
    judges the drafter unless another is chosen, at temperature 0 ("cold") and above ("warm"). learns: whether the
    drafter remembers something from one of a visitor's runs to the next.
    """
    paths = {name: model_paths(name) for name in families()}
    rounds = half_precision(paths[""].target)
    return {
        key: {
            "label": f"{cls.title} ({key})",
            "title": cls.title,
            "family": "yours" if cls.yours else cls.family,
            "summary": cls.summary,
            "exact": _word(cls, rounds) == "lossless",
            "word": _word(cls, rounds),
            "missing": missing(cls.needs, "", paths[""]),
            "elsewhere": {
                name: why
                for name, its in paths.items()
                if name and (why := missing(cls.needs, name, its))
            },
            "learns": cls.learns,
            "options": [
                {**option.to_dict(), "auto": option.name == cls.size_option}
                for option in cls.options
            ]
            + _draft_option(cls.needs, paths[""]),
            "rules": {
                name: _in_words(_exactness(rule, cls), rounds)
                for name, rule in verifiers().items()
                if all(rule.judges(cls.shape, cls.kinds(sampling)) for sampling in (COLD, WARM))
            },
            "automatic": {"cold": cls.own_rule(COLD), "warm": cls.own_rule(WARM)},
        }
        for key, cls in drafters().items()
    }


def _draft_option(needs: Mapping[str, str], paths: ModelPaths) -> list[dict]:
    """Return the option that chooses the draft model, in a list; [] if the drafter takes no draft model, or
    this page has only one. said: draft model -> words for it. part: the role whose part is chosen."""
    drafts = drafts_among(paths)
    if needs.get(ROLE) != KIND or len(drafts) < 2:
        return []
    about = "The model that guesses: a larger one guesses better, and takes longer."
    names = tuple(drafts)
    option = Option(ROLE, "choice", names[0], about, choices=names, label="Draft")
    said = {name: f"{name} ({draft.parameters / 1e6:.1f} M)" for name, draft in drafts.items()}
    return [{**option.to_dict(), "auto": False, "said": said, "part": ROLE}]


def options_of(drafter: Mapping, offered: Mapping[str, Mapping]) -> dict:
    """Return the options of a run line's drafter, and its draft model, if that can be chosen here.

    offered: the result of ``offer``.
    """
    entry = offered["drafters"].get(drafter["key"], {"options": ()})
    parts = drafter.get("parts", {})
    chosen = {o["name"]: parts.get(o["part"]) for o in entry["options"] if "part" in o}
    fits = {o["name"]: o["choices"] for o in entry["options"] if "part" in o}
    return {**drafter["options"], **{n: v for n, v in chosen.items() if v in fits[n]}}


def rule_menu() -> dict[str, dict]:
    """Return the rules by key. Each has its title, its summary, its declared options, and whether it learns from a
    visitor's runs."""
    return {
        key: {
            "title": rule.title or key,
            "summary": f"{rule.summary[0].upper()}{rule.summary[1:]}.",
            "options": [option.to_dict() for option in rule.options],
            "learns": rule.learns,
        }
        for key, rule in verifiers().items()
    }


def _word(cls, rounds: bool) -> str:
    """Return whether the drafter is lossless under its automatic rules, in words."""
    if cls.text_law:
        return f"another law: {cls.text_law}"
    return _in_words("lossless" if lossless(cls) else "lossy", rounds)


def _in_words(exactness: str, rounds: bool) -> str:
    """Return these words, with "equal up to rounding" in place of "lossless" if the target rounds, in half
    precision."""
    return exactness.replace("lossless", "equal up to rounding") if rounds else exactness


def _exactness(rule: type[Verifier], cls) -> str:
    """Return whether this rule, with this drafter's proposals, leaves the target's text unchanged, in words."""
    cold = rule.lossless_with(cls.kinds(COLD))
    if law := cls.text_law or rule.law:
        return f"another law: {law}" + (", at temperature 0 only" if rule.only_greedy else "")
    if rule.only_greedy:
        return f"{'lossless' if cold else 'lossy'}, at temperature 0 only"
    if cold and rule.lossless_with(cls.kinds(WARM)):
        return "lossless"
    return "lossless at temperature 0, lossy above" if cold else "lossy: may change the text"


def missing(needs: Mapping[str, str], models: str = "", paths: ModelPaths | None = None) -> str:
    """Return words for the needed parts that this page lacks; "" if it has them all. models: the name of an embedded
    family. paths: the models of that family, looked up if None."""
    parts = lacking(needs, (paths or model_paths(models)).parts)
    where = f" for “{title(models)}”" if models else ""
    return f"needs {parts}, which this page does not have{where}" if parts else ""


def lacking(needs: Mapping[str, str], given: Collection[str]) -> str:
    """Return words for the needed parts whose roles are not in ``given``: "a draft model and heads"; "" for none.
    needs: role -> kind of part."""
    return " and ".join(kind_of(needs[role]).named for role in sorted(needs.keys() - set(given)))


def plain_pair(drafter: str, options: Mapping | None = None, verifier: str | None = None) -> dict:
    """Return a pair as plain data: the drafter with its own rule, unless another is named. Options that are left out
    keep their defaults."""
    rule = verifier or ""
    return {
        "drafter": drafter,
        "options": dict(options or {}),
        "verifier": rule,
        "rule_options": {},
    }
