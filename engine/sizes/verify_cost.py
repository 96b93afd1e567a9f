"""Measures the cost of a pass by its number of rows (token positions), for one text or for several texts in one
pass."""

from collections.abc import Sequence
from math import inf
from statistics import mean, median, stdev

from engine.batch.together import sessions_of
from engine.core.load import Expected
from engine.core.seen import Draft
from engine.core.step import Clock
from engine.core.threads import ENGINE_LOCK, torch_threads
from engine.core.tree import DraftTree
from engine.model.language_model import LanguageModel

PREFIX = 256
IN_A_ROW, SETTLED = 8, 3
NODES = (0, 3, 4, 8, 16)
TURNS, ENOUGH = 4, 40.0
"""A number of rows is timed in so many turns. Within a turn its passes are repeated until they have taken ENOUGH
milliseconds together, or IN_A_ROW times."""
STEADY, LONGER = 0.03, 4
"""A mean is steady if its standard error is at most the share STEADY of it."""


class Passes:
    """Times passes over a chain after a text, or after each of several texts of the same tokens that share the pass.

    texts: how many texts; more than one are computed in one pass only if the model can do that. context: the tokens
    that each text already has. most: the most rows per text.
    """

    def __init__(self, model: LanguageModel, texts: int, context: int, most: int) -> None:
        self._model = model
        self._context = max(1, min(context, model.max_context - most - 1))
        self._tokens = [token % model.vocab_size for token in range(max(self._context, most))]
        capacity = self._context + most + 1
        if texts == 1:
            self._joint, sessions = None, [model.session(capacity)]
        else:
            self._joint = sessions_of(model, capacity, texts, ())
            sessions = [self._joint.open(place, ()) for place in range(texts)]
        for session in sessions:
            session.prefill(self._tokens[: self._context])
        self._sessions = sessions
        self._clock = Clock(model.device, precise=True)

    def milliseconds(self, rows: int) -> float:
        """The milliseconds of one pass over ``rows`` rows of each text."""
        chain = self._tokens[:rows]
        with ENGINE_LOCK, torch_threads(self._model.torch_threads):
            self._clock.lap()
            if self._joint is None:
                self._sessions[0].feed(chain, range(-1, rows - 1))
            else:
                tree = DraftTree()
                tree.chain(chain[1:], "")
                draft = Draft(chain[0], tree, self._context)
                self._joint.look_at(dict.fromkeys(range(len(self._sessions)), draft))
            elapsed = self._clock.lap()
            for session in self._sessions:
                session.drop()
        return elapsed

    def in_turn(
        self, numbers: Sequence[int], dearest: float = inf, sure: bool = False
    ) -> dict[int, list[float]]:
        """Return number of rows of each text -> the median milliseconds, in each turn, of the passes over so many rows.

        The numbers take turns, so a busy moment of the machine slows passes over every number of rows. Once passes take
        longer than ``dearest`` milliseconds, larger numbers are left out. There are TURNS turns. sure: on a busy machine
        there are up to LONGER times as many, until the means of all numbers are steady.
        """
        times_of: dict[int, list[float]] = {}
        for turn in range(TURNS * LONGER if sure else TURNS):
            if turn >= TURNS and all(map(_steady, times_of.values())):
                break
            for rows in numbers if turn == 0 else list(times_of):
                times_of.setdefault(rows, []).append(median(self._timed(rows)))
                if turn == 0 and min(times_of[rows]) > dearest:
                    break
        return times_of

    def _timed(self, rows: int) -> list[float]:
        """Return the milliseconds of several passes over ``rows`` rows. The first passes are left out, because passes
        are slower after a change of shape: SETTLED of them, or one that takes more than ENOUGH milliseconds."""
        for _ in range(SETTLED):
            if self.milliseconds(rows) > ENOUGH:
                break
        times: list[float] = []
        while not times or (len(times) < IN_A_ROW and sum(times) < ENOUGH):
            times.append(self.milliseconds(rows))
        return times


def _steady(times: Sequence[float]) -> bool:
    return len(times) > 1 and stdev(times) <= STEADY * mean(times) * len(times) ** 0.5


def prepared(model: LanguageModel, texts: int, context: int, rows: Sequence[int]) -> Passes:
    """A ``Passes`` for up to max(rows) rows per text, whose model has compiled its graphs as it does before a run."""
    if texts == 1:
        with ENGINE_LOCK:
            model.expect((), max(rows) - 1, Expected(context, context + max(rows)))
    return Passes(model, texts, context, max(rows))


def verify_costs(target: LanguageModel) -> dict[int, float]:
    """Number of nodes of a chain -> median milliseconds of a target pass over the root and the chain. The numbers of
    nodes take turns, so that a busy moment slows all of them."""
    rows = [count + 1 for count in NODES]
    times_of = prepared(target, 1, PREFIX, rows).in_turn(rows)
    return {rows - 1: median(times) for rows, times in times_of.items()}
