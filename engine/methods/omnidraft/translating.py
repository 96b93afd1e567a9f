"""Turns the tokens that a draft model with another vocabulary draws into proposals of the target's tokens, with exact
laws.

A *run* is a sequence of the draft model's tokens that equals one token of the target; a cache holds the known runs. The
draft model's tokens are drawn one after another. Drawing goes on while the drawn tokens are the beginning of a longer
run in the cache. If they are a run, and the beginning of no longer one, they become the token of the target that this
run equals. If they are neither a run nor the beginning of one, the longest prefix of them that is a run becomes its
token of the target, and the other drawn tokens are dropped; if no prefix is a run, drafting ends.

Why the laws are exact: of each drawn token, only this is observed before the proposal is judged: if the run may
continue after the token, the token itself; otherwise only whether the token completes a run. Given these observations,
the law of the target's token is q, restricted to the tokens that complete a run and scaled to sum to 1. This is a true
conditional law. If the drawn tokens end without a complete run, the observations already determine which prefix is
proposed, so the proposal is judged as one-hot.
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
    """The point of the text after a token over which the draft model has run. node: the token's number in this step;
    ROOT for the end of the committed text. q: [Vd], the law of the next draft token. state: [H], the draft model's
    hidden state; None at the root."""

    node: int
    q: Tensor
    state: Tensor | None = None


@dataclass(frozen=True)
class Proposal:
    """One proposed token of the target. run: the draft model's tokens that spell it. nodes: the numbers of those tokens
    of the run over which the draft model has run. before: the place before the run's last token. place: the place after
    the run's last token, or None if the draft model has not run over this token yet. kind, law: how the token was
    drawn. chance: the product of the probabilities of the run's tokens."""

    token: int
    run: Run
    nodes: list[int]
    before: Place
    place: Place | None
    kind: Kind
    law: Tensor | None
    chance: float


class Translator:
    """Draws the draft model's tokens for one step, and translates them into tokens of the target."""

    def __init__(
        self,
        reader: DraftReader,
        cache: RunCache,
        vocabulary: int,
        pick: Callable[[Tensor], int],
        greedy: bool,
    ) -> None:
        """vocabulary: the size of the target's vocabulary. pick: picks one of the draft model's tokens from q [Vd].
        greedy: whether decoding is greedy."""
        self._reader, self._cache, self._vocabulary = reader, cache, vocabulary
        self._pick, self._greedy = pick, greedy
        self._count = 0

    def next(self, place: Place) -> Proposal | None:
        """Return the proposal for the target's token after this place; None if the drawn tokens form no token of the
        target."""
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
        """Return the proposal for this run. places: for each token of the run, the place before it. last: the place
        after the run, or None if the draft model has not run over the run's last token yet."""
        chance = 1.0
        for place, token_of_run in zip(places, run, strict=True):
            chance *= float(place.q[token_of_run])
        read = [*places[1:], *([last] if last else [])]
        nodes = [place.node for place in read]
        before = places[-1]
        return Proposal(token, run, nodes, before, last, kind, law, chance)

    def behind(self, proposal: Proposal) -> tuple[Place, list[int]]:
        """Return the place after a proposal, and the numbers of all tokens of its run. If the draft model has not run
        over the run's last token yet, it does so now."""
        if proposal.place is not None:
            return proposal.place, proposal.nodes
        place = self.read(proposal.run[-1], proposal.before)
        return place, [*proposal.nodes, place.node]

    def read(self, token: int, parent: Place) -> Place:
        node, self._count = self._count, self._count + 1
        q = self._reader.expand([node], [token], [parent.node])[0]
        return Place(node, q, self._reader.states[-1])

    def _law(self, q: Tensor, begun: Run) -> Tensor:
        """Return the law [V] of the target's token, given that ``begun`` and the next drawn token are a run, and not
        the beginning of a longer one. q: the draft model's law after ``begun``."""
        lasts, tokens = self._cache.closing(begun)
        law = torch.zeros(self._vocabulary, dtype=q.dtype)
        law[tokens] = q[lasts]
        return law / law.sum()


def root(q: Tensor) -> Place:
    return Place(ROOT, q)
