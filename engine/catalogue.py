"""The engine's abilities as data, for the command line's list and the page's controls."""

from collections.abc import Sequence

from engine.core.sampling import Sampling
from engine.methods import drafters
from engine.rules import verifiers


def catalogue(presets: Sequence[dict] = (), methods: Sequence[dict] = ()) -> dict:
    """Drafters and verifiers with their options, and the presets and methods handed in."""
    return {
        "drafters": [_drafter(cls) for cls in drafters().values()],
        "verifiers": [
            {
                "key": rule.key,
                "title": rule.title or rule.key,
                "kind": "exact" if rule.exact_kinds else "lossy",
                "summary": rule.summary,
                "exact_with": sorted(rule.exact_kinds),
                "only_greedy": rule.only_greedy,
                "options": [option.to_dict() for option in rule.options],
            }
            for rule in verifiers().values()
        ],
        "presets": list(presets),
        "methods": list(methods),
    }


def _drafter(cls) -> dict:
    rules = verifiers()
    settled = (
        (rules[cls.default_greedy_verifier], Sampling()),
        (rules[cls.default_verifier], Sampling(temperature=1.0)),
    )
    return {
        "key": cls.key,
        "title": cls.title,
        "family": cls.family,
        "default_verifier": cls.default_verifier,
        "lossless": all(rule.lossless_with(cls.kinds(sampling)) for rule, sampling in settled),
        "options": [option.to_dict() for option in cls.options],
        "summary": cls.summary,
        "needs": sorted(cls.needs),
        "learns": cls.learns,
    }
