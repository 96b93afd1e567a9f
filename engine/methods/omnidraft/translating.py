"""Turns the tokens that a foreign draft draws into proposals of the target's tokens, with exact laws.

The draft's tokens are drawn one after another. While the drawn tokens begin a longer run of the cache, drawing goes on.
A complete run that no longer run continues becomes its token of the target. If the drawn tokens match no run of the
cache, the longest complete run at their beginning becomes its token.

Why the laws are exact: before its proposal is judged, only this is observed of a drawn token: the token itself if the
run may go on, otherwise only whether it ends a run. Given these observations, the target's token has the law q, cut to
the tokens that end a run and scaled to 1, which is a true conditional law. Where no run matches, the observations
already determine the proposed run, so it is one-hot.
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
    """The place behind a token that the draft has read. node: ROOT, or the token's number in this step. q: [Vd], the
    law of the next draft token. state: [H], the draft's hidden state; None at the root."""

    node: int
    q: Tensor
    state: Tensor | None = None


@dataclass(frozen=True)
class Proposal:
    """One proposed token of the target. run: the draft's tokens that spell it. nodes: the tokens of the run that the
    draft has read. before, place: the places before and behind the run's last token; ``place`` is None if the draft has
    not read that token. kind, law: how the token was drawn. chance: the product of the run's probabilities."""

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
        """vocabulary: the size of the target's vocabulary. pick: picks a token of the draft from q [Vd]. greedy:
        whether decoding is greedy."""
        self._reader, self._cache, self._vocabulary = reader, cache, vocabulary
        self._pick, self._greedy = pick, greedy
        self._count = 0

    def next(self, place: Place) -> Proposal | None:
        """Return the proposal behind this place; None if the drawn tokens form no token of the target."""
        run: Run = ()
        places, whole = (
            [place],
            0,
        )  # places[n]: behind n tokens of the run; whole: length of the longest complete run so far
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
        """Return the proposal for this run. places: one before each token of the run. last: the place behind the run,
        if it was read."""
        chance = 1.0
        for place, token_of_run in zip(places, run, strict=True):
            chance *= float(place.q[token_of_run])
        read = [*places[1:], *([last] if last else [])]
        nodes = [place.node for place in read]
        before = places[-1]
        return Proposal(token, run, nodes, before, last, kind, law, chance)

    def behind(self, proposal: Proposal) -> tuple[Place, list[int]]:
        """Return the place behind a proposal, and the numbers of all tokens of its run; the draft reads the last token
        now if it has not."""
        if proposal.place is not None:
            return proposal.place, proposal.nodes
        place = self.read(proposal.run[-1], proposal.before)
        return place, [*proposal.nodes, place.node]

    def read(self, token: int, parent: Place) -> Place:
        node, self._count = self._count, self._count + 1
        q = self._reader.expand([node], [token], [parent.node])[0]
        return Place(node, q, self._reader.states[-1])

    def _law(self, q: Tensor, begun: Run) -> Tensor:
        """Return the law [V] of the target's token, given that the next drawn token ends a run that begins with
        ``begun``."""
        lasts, tokens = self._cache.closing(begun)
        law = torch.zeros(self._vocabulary, dtype=q.dtype)
        law[tokens] = q[lasts]
        return law / law.sum()


def root(q: Tensor) -> Place:
    return Place(ROOT, q)
