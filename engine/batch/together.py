"""Several texts at once: one pass of the target per round, over the trees of all of them."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import singledispatch

from engine.core.attempt import Attempt
from engine.core.drafter import Drafter
from engine.core.load import Acceptance, Load, RowsOf
from engine.core.prompt import PromptReading
from engine.core.seen import Draft, Seen
from engine.core.step import Clock, Step
from engine.core.text import Text, TextRequest, text_of
from engine.errors import UserError
from engine.model.checkpoint_rules import with_rules
from engine.model.language_model import LanguageModel
from engine.model.session import Session


class SeparateSessions:
    """Up to B sessions, one per place, read one after the other.

    capacity: columns for the longest of the texts and a tree.
    """

    def __init__(self, model: LanguageModel, capacity: int, places: int) -> None:
        self.model, self._capacity = model, capacity
        self.sessions: list[Session | None] = [None] * places

    def open(self, place: int, features: tuple[int, ...]) -> Session:
        """A session that has read nothing, in the place of the one that was there. features: as for a session."""
        self.sessions[place] = self.model.session(self._capacity, features)
        return self.sessions[place]

    @property
    def rows_of(self) -> RowsOf:
        """The rows of a round, from the rows that each of its texts asks for."""
        return sum

    def look_at(self, drafts: Mapping[int, Draft]) -> dict[int, Seen]:
        """Read root and tree of each of these sequences, by place, as ``Session.look`` does."""
        return {place: self.sessions[place].look(draft) for place, draft in drafts.items()}


@singledispatch
def sessions_of(
    model: LanguageModel, capacity: int, places: int, features: tuple[int, ...]
) -> SeparateSessions:
    """Sessions for this many texts at a time. features: the layers of which any of the texts wants features."""
    return SeparateSessions(model, capacity, places)


def decode_together(
    target: LanguageModel,
    requests: Sequence[TextRequest],
    recorded: bool = True,
    places: int | None = None,
) -> Iterator[tuple[int, Step]]:
    """Write these texts; each round gives a step of every text that is under way: (index in ``requests``, step).

    Every text is the one that ``decode`` would write by itself, with a drafter instance of its own. Texts
    that begin together with the same prompt read it once. recorded: as for ``decode``. places: how many texts are
    written at a time (None: all); when one ends, the next request takes its place.

    Milliseconds of a step: drafting, judging and committing are the text's own; each text is charged an equal
    share of the pass, so that the steps of a round add up to the round.

    Raises UserError for a drafter that writes in a loop of its own.
    """
    for request in requests:
        _check_shares_passes(request.drafter)
    texts = [text_of(target, with_rules(target, request), recorded) for request in requests]
    batch = _Batch(target, texts, len(texts) if places is None else min(places, len(texts)))
    try:
        while batch.fill():
            yield from batch.round()
    finally:
        batch.close()


def _check_shares_passes(drafter: Drafter) -> None:
    if drafter.loop != "speculative":
        raise UserError(
            f"{drafter.title} writes in a loop of its own and cannot share passes with other texts."
        )


class _Batch:
    """Texts in their places, and those that wait for one."""

    def __init__(self, target: LanguageModel, texts: Sequence[Text], places: int) -> None:
        self._texts = texts
        self._waiting = deque(range(len(texts)))
        self._written: dict[int, int] = {}  # by place: the index of the text that is written there
        self._spent: dict[int, float] = {}  # milliseconds for a prompt, until its first step
        self._clock = Clock(target.device, precise=any(text.recorded for text in texts))
        layers = {layer for text in texts for layer in text.drafter.feature_layers}
        capacity = max(text.capacity for text in texts)
        self._sessions = sessions_of(target, capacity, places, tuple(sorted(layers)))
        self._places = places

    def fill(self) -> bool:
        """Begin the next texts in the free places. Returns whether any text is under way."""
        free = [place for place in range(self._places) if place not in self._written]
        joining = dict(zip(free, self._waiting, strict=False))
        chances = [self._texts[index].acceptance.chance for index in self._written.values()]
        for place, index in joining.items():
            self._waiting.popleft()
            self._written[place] = index
            self._texts[index].acceptance = Acceptance.as_of(chances)
        self._begin(joining)
        self._leave()
        return bool(self._written)

    def _begin(self, joining: dict[int, int]) -> None:
        """Read the prompts of these texts, by place."""
        readings: dict[tuple, PromptReading] = {}
        for index in joining.values():
            text = self._texts[index]
            read = tuple(text.context[:-1])
            own, rows = tuple(text.drafter.feature_layers), text.drafter.feature_rows
            readings.setdefault(read, PromptReading(read)).expect(own, rows)
        for place, index in joining.items():
            text = self._texts[index]
            session = self._sessions.open(place, tuple(text.drafter.feature_layers))
            reading = readings[tuple(text.context[:-1])]
            features = reading.fill(session, text.drafter.feature_rows)
            charged = reading.charge(self._clock.lap())
            text.begin(session, features, self._load(dict.fromkeys(self._written, 1)))
            self._spent[index] = charged + self._clock.lap()

    def _load(self, rows: dict[int, int]) -> Load:
        """rows: that the texts in these places ask for."""
        texts = [self._texts[self._written[place]] for place in rows]
        rows_of = self._sessions.rows_of
        return Load(
            len(texts),
            rows_of([*rows.values()]),
            sum(len(text.context) for text in texts),
            tuple(text.acceptance.chance for text in texts),
            rows_of,
        )

    def round(self) -> Iterator[tuple[int, Step]]:
        """Draft, read and judge once for every text that is under way."""
        texts = {place: self._texts[index] for place, index in self._written.items()}
        attempts: dict[int, Attempt] = {}
        for place, text in texts.items():
            attempts[place] = text.draft()
            attempts[place].milliseconds["draft"] = self._clock.lap()
        drafts = {place: attempt.draft for place, attempt in attempts.items()}
        seen = self._sessions.look_at(drafts)
        share = self._clock.lap() / len(drafts)
        load = self._load({place: draft.count for place, draft in drafts.items()})
        # all verdicts are under way before the first is waited for
        attempts = {place: texts[place].judge(attempts[place], seen[place]) for place in drafts}
        steps = []
        for place, attempt in attempts.items():
            attempt.milliseconds["verify"] = share
            step = texts[place].settle(attempt, self._clock, load)
            step.prefill_milliseconds = self._spent.pop(self._written[place], 0.0)
            steps.append((self._written[place], step))
        self._leave()
        for index_and_step in steps:
            yield index_and_step
            self._clock.lap()  # the caller's time is not engine time

    def _leave(self) -> None:
        """Free the places of the texts that have ended."""
        for place, index in [*self._written.items()]:
            if self._texts[index].stop is not None:
                del self._written[place]
                self._texts[index].drafter.close()

    def close(self) -> None:
        for index in self._written.values():
            self._texts[index].drafter.close()
