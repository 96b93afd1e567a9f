"""Several texts at once: one pass of the target per round, over the trees of all texts.

Prompts may be read in parts, one per round, beside the texts that are under way, so that a long prompt delays no text:
Agrawal et al., SARATHI: Efficient LLM Inference by Piggybacking Decodes with Chunked Prefills (2023), and Taming
Throughput-Latency Tradeoff in LLM Inference with Sarathi-Serve (OSDI 2024). In these papers a text that is under way
has one row per round. Here it also has a row for each drafted token, so drafts and prompts compete for the rows of a
round: drafts are shorter while a prompt is being read.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, singledispatch

from engine.batch.branches import Branches, columns_of
from engine.batch.separate import SeparateSessions
from engine.core.attempt import Attempt
from engine.core.drafter import Drafter
from engine.core.load import Acceptance, Load
from engine.core.prompt import PromptReading
from engine.core.step import Clock, Step
from engine.core.text import Text, TextRequest, text_of
from engine.errors import UserError
from engine.model.checkpoint_rules import with_rules
from engine.model.language_model import LanguageModel
from engine.model.session import Session

MOST_COLUMNS = 4096
"""The most columns of different texts in one pass. Each row is also compared with the columns of the other texts, so
with longer texts a pass for each of them takes less time."""


@dataclass(frozen=True)
class Budget:
    """The limits on the rows of a round. rows: the most rows for roots, drafts and prompts together. part: the number
    of rows that drafts leave free for prompts while a prompt is unread. The budget limits the depth of the drafts,
    which is the same for all texts and at least one token. It does not limit the number of nodes, so a tree may have
    more rows than its text's share."""

    rows: int
    part: int

    def deepest(self, texts: int, unread: bool) -> int:
        """The depth that no draft may exceed in a round of ``texts`` texts. unread: whether a prompt is still to be
        read."""
        return max(1, (self.rows - (self.part if unread else 0)) // texts - 1)


@singledispatch
def sessions_of(
    model: LanguageModel,
    capacity: int,
    places: int,
    features: tuple[int, ...],
    prompt: int = 0,
    own: bool = False,
) -> SeparateSessions:
    """Sessions for ``places`` texts at a time. features: the layers whose hidden states at least one of the texts
    requests. prompt: the length of the prompt that all texts share; 0 if their prompts differ. own: whether each text
    must have a session of its own, because a drafter uses more of it than a ``Branch`` offers."""
    together = places > 1 and model.holds_branches and not own
    if together and columns_of(capacity, places, prompt) - prompt <= MOST_COLUMNS:
        return Branches(model, capacity, places, features, prompt)
    return SeparateSessions(model, capacity, places)


def decode_together(
    target: LanguageModel,
    requests: Sequence[TextRequest],
    recorded: bool = True,
    places: int | None = None,
    budget: Budget | None = None,
) -> Iterator[tuple[int, Step]]:
    """Write these texts. Each round yields (index in ``requests``, step) for every text that is under way.

    Every text is the one that ``decode`` would write by itself, with a drafter instance of its own. If several texts
    with the same prompt begin at the same time, the target reads the prompt once for all of them. recorded: as for
    ``decode``. places: how many texts are written at a time (None: all); when a text ends, the next request takes its
    place. budget: the limits on a round's rows, where prompts are read in parts; with None, each prompt is read as a
    whole before the round.

    The milliseconds of a step count the text's own drafting, judging and committing, and an equal share of the pass. So
    the steps of a round add up to the time of the round.

    Raises UserError for a drafter that writes in a loop of its own.
    """
    for request in requests:
        _check_shares_passes(request.drafter)
    texts = [text_of(target, with_rules(target, request), recorded) for request in requests]
    places = len(texts) if places is None else min(places, len(texts))
    batch = _Batch(target, texts, places, budget)
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


def _one_prompt(texts: Sequence[Text]) -> int:
    """The length of the prompt that these texts share. It is 0 for a single text, for texts whose prompts differ, and
    if a drafter needs the target's hidden states at the prompt."""
    if len({tuple(text.context) for text in texts}) > 1 or len(texts) == 1:
        return 0
    if any(text.drafter.feature_layers for text in texts):
        return 0
    return len(texts[0].context)


class _Batch:
    """Texts in their places, and texts that wait for a place."""

    def __init__(
        self, target: LanguageModel, texts: Sequence[Text], places: int, budget: Budget | None
    ) -> None:
        self._texts, self._budget = texts, budget
        self._waiting = deque(range(len(texts)))
        self._coming: dict[
            int, tuple[int, PromptReading]
        ] = {}  # by place: the index of the text whose prompt is to be read, and the reading
        self._written: dict[int, int] = {}  # by place: the index of the text that is written there
        self._spent: dict[int, float] = {}  # by text: milliseconds for its prompt
        self._clock = Clock(target.device, precise=any(text.recorded for text in texts))
        layers = {layer for text in texts for layer in text.drafter.feature_layers}
        capacity = max(text.capacity for text in texts)
        features, prompt = tuple(sorted(layers)), _one_prompt(texts)
        own = any(text.drafter.uses_target for text in texts)
        self._sessions = sessions_of(target, capacity, places, features, prompt, own)
        self._places = places

    def fill(self) -> bool:
        """Give the free places to the next texts. Returns whether any text is under way."""
        free = [place for place in range(self._places) if place not in self._taken]
        readings: dict[tuple, PromptReading] = {}
        for place, index in zip(free, [*self._waiting], strict=False):
            self._waiting.popleft()
            text = self._texts[index]
            read = tuple(text.context[:-1])
            reading = readings.setdefault(read, PromptReading(read))
            reading.expect(text.drafter.feature_layers, text.drafter.feature_rows)
            self._coming[place] = index, reading
        if self._budget is None:
            self._begin([*self._coming])
        return bool(self._taken)

    @property
    def _taken(self) -> Mapping[int, object]:
        return self._coming | self._written

    def _read(self, rows: int) -> None:
        """Read up to ``rows`` tokens of prompts, in order of arrival. Then begin the texts whose prompts have been read
        to the end."""
        for place, (_, reading) in self._coming.items():
            while rows > 0 and (read := reading.read_part(self._fresh(place), rows, self._clock)):
                rows -= read
        self._begin([place for place, (_, prompt) in self._coming.items() if not prompt.unread])

    def _fresh(self, place: int) -> Callable[[], Session]:
        index, _ = self._coming[place]
        return partial(self._sessions.open, place, tuple(self._texts[index].drafter.feature_layers))

    def _begin(self, places: Sequence[int]) -> None:
        """Begin the texts in these places; unread prompts are read as a whole."""
        chances = [self._texts[index].acceptance.chance for index in self._written.values()]
        for place in places:
            index, _ = self._coming[place]
            self._written[place] = index
            self._texts[index].acceptance = Acceptance.as_of(chances)
        for place in places:
            fresh, (index, reading) = self._fresh(place), self._coming[place]
            text = self._texts[index]
            session = reading.session(fresh, text.drafter.feature_layers)
            features = reading.fill(session, text.drafter.feature_rows)
            charged = reading.charge(self._clock.lap())
            text.begin(session, features, self._load(dict.fromkeys(self._written, 1)))
            del self._coming[place]
            self._spent[index] = charged + self._clock.lap()
        self._leave()

    def _load(self, rows: dict[int, int]) -> Load:
        """The load of a pass. rows: place -> the number of rows that its text needs."""
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
        """Yields a step of every text that is under way. With a budget, the rows that these steps leave are first used
        to read parts of the other texts' prompts."""
        steps, rows = self._steps() if self._written else ([], 0)
        self._leave()
        if self._budget is not None:
            self._read(max(self._budget.part, self._budget.rows - rows))
        for index_and_step in steps:
            yield index_and_step
            self._clock.lap()  # the caller's time is not engine time

    def _steps(self) -> tuple[list[tuple[int, Step]], int]:
        """Draft, run the target's pass and judge once for every text that is under way. Returns the steps, and the
        number of rows in the pass."""
        texts = {place: self._texts[index] for place, index in self._written.items()}
        attempts: dict[int, Attempt] = {}
        for place, text in texts.items():
            if self._budget is not None:
                text.deepest = self._budget.deepest(len(texts), bool(self._coming))
            attempts[place] = text.draft()
            attempts[place].milliseconds["draft"] = self._clock.lap()
        drafts = {place: attempt.draft for place, attempt in attempts.items()}
        seen = self._sessions.look_at(drafts)
        share = self._clock.lap() / len(drafts)
        rows = {place: draft.count for place, draft in drafts.items()}
        load = self._load(rows)
        # all verdicts are under way before the first is waited for
        attempts = {place: texts[place].judge(attempts[place], seen[place]) for place in drafts}
        steps = []
        for place, attempt in attempts.items():
            attempt.milliseconds["verify"] = share
            step = texts[place].settle(attempt, self._clock, load)
            step.prefill_milliseconds = self._spent.pop(self._written[place], 0.0)
            steps.append((self._written[place], step))
        return steps, sum(rows.values())

    def _leave(self) -> None:
        """Free the places of the texts that have ended."""
        for place, index in [*self._written.items()]:
            if self._texts[index].stop is not None:
                del self._written[place]
                self._texts[index].drafter.close()

    def close(self) -> None:
        for place, index in self._written.items():
            if place not in self._coming:
                self._texts[index].drafter.close()
