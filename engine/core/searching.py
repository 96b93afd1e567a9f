"""The loop of decoders that write several texts at once and choose among them; it is a generator. Nothing is drafted or
judged: the drafter itself runs the target's passes, in the target's session, and decides which tokens belong to the
text."""

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
    """The decisions of a search after a pass, stored as ``DraftTree.aside``. path: nodes of the tree that belong to the
    text from now on; it may be empty. given_up: nodes that the search has dropped in this pass. Other nodes may still
    be chosen."""

    path: list[int]
    given_up: frozenset[int] = frozenset()


def searching(
    target: Target,
    request: TextRequest,
    recorded: bool = True,
    reading: PromptReading | None = None,
) -> Iterator[Step]:
    """Write the requested text and yield each step; see ``engine.core.decode.decode``. A step is one pass over all
    candidate texts.

    A step's tree holds the candidates below the decided tokens. The step's output is the tokens that this pass decided,
    possibly none; the step has no p, no judgement and no final token.
    """
    return steps_of(SearchedText(target, request), target, recorded, reading)


class SearchedText(Text):
    """A text whose drafter runs the target's passes itself."""

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
        """Does nothing, because the drafter decides itself which rows stay in the target's session."""

    def _why_stop(self) -> Stop | None:
        """The reason to stop; None as long as the text has no token. So an end token at the end of the prompt does not
        end the text."""
        begun = len(self.context) > len(self.request.prompt)
        return super()._why_stop() if begun else None


def _status(tree: DraftTree, path: list[int]) -> list[Status]:
    status: list[Status] = ["ignored"] * len(tree)
    for node in tree.aside.given_up:
        status[node] = "rejected"
    for node in path:
        status[node] = "accepted"
    return status
