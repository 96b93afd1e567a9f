"""Measures the cost of a pass by its number of rows (token positions), for one text or for several texts in one
pass."""

from collections.abc import Sequence
from statistics import median

from engine.batch.together import sessions_of
from engine.core.load import Expected
from engine.core.seen import Draft
from engine.core.step import Clock
from engine.core.threads import ENGINE_LOCK, torch_threads
from engine.core.tree import DraftTree
from engine.model.language_model import LanguageModel

PREFIX = 256
ROUNDS, IN_A_ROW, SETTLED = 4, 8, 3
NODES = (0, 3, 4, 8, 16)
FEWEST, MOST, ENOUGH = 3, 32, 120.0
"""How often a pass is timed: at least FEWEST times, at most MOST times, and no more once all timed passes together
have taken ENOUGH milliseconds."""


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
        sessions[0].prefill(self._tokens[: self._context])
        for session in sessions[1:]:
            session.take_over(sessions[0], self._context)
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

    def usual(self, rows: int) -> tuple[float, int]:
        """The median milliseconds of a pass over ``rows`` rows of each text, and how many passes were timed."""
        for _ in range(SETTLED):
            if self.milliseconds(rows) > ENOUGH:
                break
        times: list[float] = []
        while len(times) < FEWEST or (len(times) < MOST and sum(times) < ENOUGH):
            times.append(self.milliseconds(rows))
        return median(times), len(times)


def prepared(model: LanguageModel, texts: int, context: int, rows: Sequence[int]) -> Passes:
    """A ``Passes`` for up to max(rows) rows per text, whose model has compiled its graphs as it does before a run."""
    if texts == 1:
        with ENGINE_LOCK:
            model.expect((), max(rows) - 1, Expected(context, context + max(rows)))
    return Passes(model, texts, context, max(rows))


def verify_costs(target: LanguageModel) -> dict[int, float]:
    """Number of nodes of a chain -> median milliseconds of a target pass over the root and the chain. The numbers of
    nodes take turns, so that a busy moment slows all of them."""
    passes = prepared(target, 1, PREFIX, [count + 1 for count in NODES])
    times_of: dict[int, list[float]] = {count: [] for count in NODES}
    for _ in range(ROUNDS + 1):
        for count in NODES:
            # passes of one text have one shape; the first passes after a change of shape are not counted
            times = [passes.milliseconds(count + 1) for _ in range(IN_A_ROW)]
            times_of[count] += times[SETTLED:]
    return {count: median(times[IN_A_ROW - SETTLED :]) for count, times in times_of.items()}
