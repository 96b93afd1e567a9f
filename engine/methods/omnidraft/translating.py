"""Turns the tokens that a foreign draft draws into proposals of the target's tokens, with exact laws.

The draft's tokens are drawn one after another. As long as the drawn tokens begin a longer known run, drawing goes on.
A complete run that no longer run continues becomes its token of the target. If the drawn tokens match no known run,
the longest complete run at their beginning becomes its token.

Exactness: before its proposal is judged, only this is observed of a drawn token: the token itself if the run may go
on, otherwise only whether it ends a run. Given these observations, the target's token has the law q, cut to the
tokens that end a run and scaled to 1, which is a true conditional law. Where no known run matches, the observations
already fix the run that is proposed, so it is one-hot.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.core.tree import ROOT, Kind
from engine.methods.omnidraft.run_cache import RunCache
from engine.methods.shared.draft_model import DraftReader
from engine.methods.shared.spelling import Run


@dataclass(frozen=True)
class Place:
    """The place behind a token that the draft has read. node: ROOT, or the token's number among those of the step. q:
    [Vd]. state: [H], None at the root."""

    node: int
    q: Tensor
    state: Tensor | None = None


@dataclass(frozen=True)
class Proposal:
    """One token of the target. run: the draft's tokens. nodes: those of them that the draft has read. before, place:
    before and behind the run's last token; place is None if that token was not read. chance: the product of the run's
    probabilities."""

    token: int
    run: Run
    nodes: list[int]
    before: Place
    place: Place | None
    kind: Kind
    law: Tensor | None
    chance: float


class Translator:
    """Translates the draft's tokens of one step."""

    def __init__(
        self,
        reader: DraftReader,
        cache: RunCache,
        vocabulary: int,
        pick: Callable[[Tensor], int],
        greedy: bool,
    ) -> None:
        """vocabulary: the target's. pick: a token of the draft from q [Vd]."""
        self._reader, self._cache, self._vocabulary = reader, cache, vocabulary
        self._pick, self._greedy = pick, greedy
        self._count = 0

    def next(self, place: Place) -> Proposal | None:
        """The proposal behind this place; None if the drawn tokens form no token of the target."""
        run: Run = ()
        places, whole = (
            [place],
            0,
        )  # places[n]: behind n tokens of the run; whole: length of the longest complete one
        while True:
            drawn = self._pick(places[-1].q)
            begun, run = run, (*run, drawn)
            if not self._cache.grows(run):
                break
            places.append(self.read(drawn, places[-1]))
            whole = whole if self._cache.token(run) is None else len(run)
        token = self._cache.token(run)
        if token is not None:
            law = None if self._greedy else self._law(places[-1].q, begun)
            kind: Kind = "one_hot" if self._greedy else "iid"
            return self._proposal(token, run, places, None, kind, law)
        if not whole:
            return None
        run, places = run[:whole], places[: whole + 1]
        token = self._cache.token(run)
        return self._proposal(token, run, places[:-1], places[-1], "one_hot", None)

    def _proposal(
        self, token: int, run: Run, places: list[Place], last: Place | None, kind: Kind, law
    ) -> Proposal:
        """places: before each token of the run. last: behind the run."""
        chance = 1.0
        for place, token_of_run in zip(places, run, strict=True):
            chance *= float(place.q[token_of_run])
        read = [*places[1:], *([last] if last else [])]
        nodes = [place.node for place in read]
        before = places[-1]
        return Proposal(token, run, nodes, before, last, kind, law, chance)

    def behind(self, proposal: Proposal) -> tuple[Place, list[int]]:
        """The place behind a proposal, which is read now if it was not before, and all nodes of its run."""
        if proposal.place is not None:
            return proposal.place, proposal.nodes
        place = self.read(proposal.run[-1], proposal.before)
        return place, [*proposal.nodes, place.node]

    def read(self, token: int, parent: Place) -> Place:
        node, self._count = self._count, self._count + 1
        q = self._reader.expand([node], [token], [parent.node])[0]
        return Place(node, q, self._reader.states[-1])

    def _law(self, q: Tensor, begun: Run) -> Tensor:
        """[V] of the target's token, given that the next one drawn ends a run begun like this."""
        lasts, tokens = self._cache.closing(begun)
        law = torch.zeros(self._vocabulary, dtype=q.dtype)
        law[tokens] = q[lasts]
        return law / law.sum()


def root(q: Tensor) -> Place:
    return Place(ROOT, q)
