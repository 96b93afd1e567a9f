"""The switching loop: at each step, either the drafter writes a token that is not checked, or the target writes one.
The loop is a generator, and lossy."""

from collections.abc import Iterator

from engine.core.attempt import Attempt
from engine.core.decode import begin
from engine.core.prompt import PromptReading
from engine.core.proposal import Proposal
from engine.core.rule import Final, Verdict
from engine.core.seen import Draft, Seen
from engine.core.step import Clock, Step
from engine.core.target import Target
from engine.core.text import Outcome, Text, TextRequest
from engine.core.tree import DraftTree


def switching(
    target: Target,
    request: TextRequest,
    recorded: bool = True,
    reading: PromptReading | None = None,
) -> Iterator[Step]:
    """Write the requested text, one token per step; see ``engine.core.decode.decode``.

    A token that the drafter proposes is committed: its step has one accepted node, no p, no judgement and no final
    token. If the drafter proposes nothing, the target writes one token, as in plain decoding. Each model reads the
    other's tokens in its own next pass.
    """
    return steps_of(SwitchingText(target, request), target, recorded, reading)


def steps_of(
    text: Text, target: Target, recorded: bool, reading: PromptReading | None
) -> Iterator[Step]:
    """Yield the steps of a text by calling the text's own ``step`` method until the text ends."""
    clock = Clock(target.device, precise=recorded)
    spent = begin(text, target, reading or PromptReading(text.request.prompt[:-1]), clock)
    del reading  # freed once the last text has begun
    try:
        while text.stop is None:
            step = text.step(clock)
            step.prefill_milliseconds, spent = spent, 0.0
            yield step
            clock.lap()  # the caller's time is not engine time
    finally:
        text.drafter.close()


class SwitchingText(Text):
    """A text whose target makes a pass only when it writes a token."""

    def step(self, clock: Clock) -> Step:
        """Write one more token and finish its step."""
        attempt = self.draft()
        attempt.milliseconds["draft"] = clock.lap()
        tree = attempt.draft.tree
        if len(tree):
            unjudged = Verdict([0], ["accepted"], [], tree.tokens[0], "bonus", walk=[])
            return self.finish(attempt, Outcome(unjudged, None), clock)
        seen = self._look()
        attempt.milliseconds["verify"] = clock.lap()
        return self.settle(self.judge(attempt, seen), clock)

    def draft(self) -> Attempt:
        """Return an attempt whose tree holds one token or none. The token may take the last position that is free,
        because a step with a drafted token has no final token."""
        room = min(self._limit, self.drafter.max_context) - len(self.context)
        proposal = self._proposal(self.context, 1) if room > 0 else Proposal(DraftTree())
        draft = Draft(self.context[-1], proposal.tree, len(self.context))
        return Attempt(proposal, draft)

    def _look(self) -> Seen:
        """Have the target read and commit all tokens written since the target's last pass. Return the target's logits
        after the last of these tokens."""
        logits = self.session.extend(self.context[self.session.length :])
        return Seen(logits[None], None)

    def _keep(self, seen: Seen, verdict: Verdict, final: Final) -> None:
        """Does nothing: ``_look`` has committed the tokens."""
