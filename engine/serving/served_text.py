"""A text whose target is behind a serving engine. At temperature 1 the engine reports only a part of p, and this
module makes the judging exact nevertheless.

A draft model draws only from its few likeliest tokens. The engine reports p of all these tokens, so p is known
wherever q is above 0. A drafted token x is accepted with probability min(1, p(x)/q(x)). After a refusal, the residual
max(0, p - q) is known for each of these tokens. For all other tokens, whose q is 0, only the sum of the residual is
known. The rule spreads this sum evenly over them. If the rule's final token is one of these others, it is replaced by
a token that the engine itself drew from p without the tokens whose p is reported. The result follows exactly the
residual of Leviathan et al. (2023).
"""

from dataclasses import replace

from engine.core.attempt import Attempt
from engine.core.rule import Verdict
from engine.core.sampling import Sampling
from engine.core.seen import Seen
from engine.core.text import Text, text_of
from engine.errors import UserError
from engine.serving.served_rows import KNOWN, ServedSeen
from engine.serving.served_target import ServedTarget


class ServedText(Text):
    def begin(self, session, features, load=None) -> None:
        session.seed = None if self.sampling.greedy else self.sampling.seed
        super().begin(session, features, load)

    @property
    def drafting(self) -> Sampling:
        return self.sampling if self.sampling.greedy else replace(self.sampling, top_k=KNOWN)

    def judge(self, attempt: Attempt, seen: ServedSeen) -> Attempt:
        judged = super().judge(attempt, seen)
        if self.sampling.greedy:
            return judged

        def verdict():
            verdict, p = judged.judging()
            return replace(verdict, final_token=final_token(verdict, seen)), p

        return replace(judged, judging=verdict)

    def _passes(self, seen: Seen) -> dict[str, int]:
        """The passes of a step, by model; each request to the engine counts as a pass of the target."""
        return super()._passes(seen) | {"target": seen.calls}


def final_token(verdict: Verdict, seen: ServedSeen) -> int:
    """The rule's final token if the engine reported p of this token; otherwise the token that the engine drew. Raises
    UserError if the engine drew a token that it was told not to draw."""
    row = seen.rows[verdict.walk[-1] + 1]
    if verdict.final_token in row.banned:
        return verdict.final_token
    if row.drawn in row.banned:
        raise UserError("The engine draws tokens that it was told not to draw.")
    return row.drawn


@text_of.register
def _(target: ServedTarget, request, recorded) -> Text:
    return ServedText(target, request, recorded)
