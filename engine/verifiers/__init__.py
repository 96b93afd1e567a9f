"""Acceptance rules, one per file. A new rule needs its file and one line in ``RULES``."""

from collections.abc import Mapping

from engine.errors import LISTED, unknown
from engine.options import Value, resolve
from engine.verifiers.base import Case, Judgement, Verdict, Verifier
from engine.verifiers.bild import BigLittle
from engine.verifiers.gad import TopBeta
from engine.verifiers.greedy import Greedy
from engine.verifiers.gsd import Grouped
from engine.verifiers.lud import Unchecked
from engine.verifiers.rapid import Transfer
from engine.verifiers.reflective import Reflective
from engine.verifiers.rejection import Rejection
from engine.verifiers.sampler_match import SamplerMatch
from engine.verifiers.specreason import StepGrade
from engine.verifiers.spectr import SpecTr
from engine.verifiers.typical import Typical

__all__ = ["Case", "Judgement", "Verdict", "Verifier", "verifier", "verifiers"]

RULES: list[type[Verifier]] = [
    Greedy,
    Rejection,
    SamplerMatch,
    SpecTr,
    BigLittle,
    Typical,
    Unchecked,
    TopBeta,
    Transfer,
    Reflective,
    Grouped,
    StepGrade,
]


def verifiers() -> dict[str, type[Verifier]]:
    """Every rule by its key."""
    return {rule.key: rule for rule in RULES}


def verifier(key: str, options: Mapping[str, Value] | None = None) -> Verifier:
    """A rule with these options. Raises UserError for an unknown key, and for options that do not fit."""
    known = verifiers()
    if key not in known:
        raise unknown("verifier", key, known, LISTED)
    return known[key](resolve(f"verifier {key}", known[key].options, options or {}))
