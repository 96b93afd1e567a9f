"""Acceptance rules, one a file. The registry names them."""

from engine.errors import UserError
from engine.verifiers.base import Judgement, Verdict, Verifier
from engine.verifiers.greedy import Greedy
from engine.verifiers.rejection import Rejection
from engine.verifiers.sampler_match import SamplerMatch

__all__ = ["Judgement", "Verdict", "Verifier", "verifier", "verifiers"]


def verifiers() -> dict[str, Verifier]:
    """Every rule by its key. Rules hold no state: one instance serves every run."""
    return dict(_VERIFIERS)


def verifier(key: str) -> Verifier:
    """Raises UserError for a key that names no rule."""
    if key not in _VERIFIERS:
        raise UserError(f"There is no verifier {key!r}; known are {', '.join(_VERIFIERS)}.")
    return _VERIFIERS[key]


_VERIFIERS = {rule.key: rule for rule in (Greedy(), Rejection(), SamplerMatch())}
