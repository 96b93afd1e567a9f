"""The engine's drafters and rules as data, for the command line's list and the page's controls."""

from collections.abc import Sequence

from engine.core.drafter import Drafter
from engine.core.sampling import Sampling
from engine.methods import drafters
from engine.rules import verifiers


def catalogue(
    presets: Sequence[dict] = (), methods: Sequence[dict] = (), models: Sequence[dict] = ()
) -> dict:
    """Drafters and verifiers with their options, and the presets, methods and model families that are passed in."""
    return {
        "drafters": [_drafter(cls) for cls in drafters().values()],
        "verifiers": [
            {
                "key": rule.key,
                "title": rule.title or rule.key,
                "kind": "exact" if rule.exact_kinds else rule.law and "another law" or "lossy",
                "summary": rule.summary,
                "exact_with": sorted(rule.exact_kinds),
                "only_greedy": rule.only_greedy,
                "options": [option.to_dict() for option in rule.options],
            }
            for rule in verifiers().values()
        ],
        "presets": list(presets),
        "methods": list(methods),
        "models": list(models),
    }


def lossless(cls: type[Drafter]) -> bool:
    """Whether the drafter, judged by its default rules, keeps the target's law, both greedy and sampled."""
    rules = verifiers()
    return all(
        rules[cls.own_rule(sampling)].lossless_with(cls.kinds(sampling))
        for sampling in (Sampling(), Sampling(temperature=1.0))
    )


def _drafter(cls: type[Drafter]) -> dict:
    return {
        "key": cls.key,
        "title": cls.title,
        "family": cls.family,
        "default_verifier": cls.default_verifier,
        "lossless": lossless(cls),
        "law": cls.text_law,
        "options": [option.to_dict() for option in cls.options],
        "summary": cls.summary,
        "needs": sorted(cls.needs),
        "learns": cls.learns,
    }
