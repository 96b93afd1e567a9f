"""The loop of decoders that write several texts at once, and choose: it is a generator. The target drafts nothing here and judges nothing; the
drafter reads with the target itself, in the target's own session, and says which tokens are decided.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from engine.core.attempt import Attempt
from engine.core.prompt import PromptReading
from engine.core.rule import Final, Status, Verdict
from engine.core.seen import Draft, Seen
from engine.core.step import Clock, Step, Stop
from engine.core.switching import steps_of
from engine.core.target import Target
from engine.core.text import Outcome, Text, TextRequest
from engine.core.tree import DraftTree


@dataclass(frozen=True)
class Decided:
    """The decisions of a search after a pass, kept as ``DraftTree.aside``. path: nodes of the tree that belong to the
    text from now on, which may be none. given_up: nodes that were left in this pass. All other nodes may still be
    taken."""

    path: list[int]
    given_up: frozenset[int] = frozenset()


def searching(
    target: Target,
    request: TextRequest,
    recorded: bool = True,
    reading: PromptReading | None = None,
) -> Iterator[Step]:
    """Write the requested text, a pass over all texts that are under way a step; see ``engine.core.decode.decode``.

    A step's tree holds them below the tokens that are decided already. Its output is what this pass decided, which may be nothing;
    it has no p, no judgement and no final token.
    """
    return steps_of(SearchedText(target, request), target, recorded, reading)


class SearchedText(Text):
    """A text whose drafter reads with the target itself."""

    def step(self, clock: Clock) -> Step:
        """Make one more pass of the target and finish its step."""
        room = self._limit - len(self.context)
        proposal = self._proposal(self.context, room)
        tree = proposal.tree
        draft = Draft(self.context[-1], tree, len(self.context))
        attempt = Attempt(proposal, draft, milliseconds={"verify": clock.lap()})
        path = tree.aside.path
        path = path[: self.ending.first([tree.tokens[node] for node in path])]
        verdict = Verdict(path, _status(tree, path), [], 0, None, walk=[])
        return self.finish(attempt, Outcome(verdict, None), clock)

    def _keep(self, seen: Seen, verdict: Verdict, final: Final) -> None:
        """Does nothing: the drafter keeps the rows that it reads."""

    def _why_stop(self) -> Stop | None:
        """A text without a token of its own has not ended, whatever the prompt ends with."""
        begun = len(self.context) > len(self.request.prompt)
        return super()._why_stop() if begun else None


def _status(tree: DraftTree, path: list[int]) -> list[Status]:
    status: list[Status] = ["ignored"] * len(tree)
    for node in tree.aside.given_up:
        status[node] = "rejected"
    for node in path:
        status[node] = "accepted"
    return status
