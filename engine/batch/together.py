"""Several texts at once: one pass of the target per round, over the trees of all of them."""

from collections.abc import Iterator, Sequence

from engine.batch.joint import SeparateSessions, sessions_of
from engine.checkpoint_rules import with_rules
from engine.drafters.base import Drafter, Load
from engine.errors import UserError
from engine.step import Clock, Step
from engine.target.language_model import LanguageModel
from engine.target.prompt import PromptReading
from engine.text import Text, TextRequest, text_of


def decode_together(
    target: LanguageModel, requests: Sequence[TextRequest], recorded: bool = True
) -> Iterator[tuple[int, Step]]:
    """Write these texts; each round gives a step of every text that has not ended: (index in ``requests``, step).

    Every text is the one that ``decode`` would write by itself, with a drafter instance of its own. Texts
    that begin with the same prompt read it once. recorded: as for ``decode``.

    Milliseconds of a step: drafting, judging and committing are the text's own; each text is charged an equal
    share of the pass, so that the steps of a round add up to the round.

    Raises UserError for a drafter that writes in a loop of its own.
    """
    for request in requests:
        _check_shares_passes(request.drafter)
    texts = [text_of(target, with_rules(target, request), recorded) for request in requests]
    clock = Clock(target.device, precise=any(text.recorded for text in texts))
    try:
        sessions, spent = _begin(target, texts, clock)
        written = 0.0
        while open_ones := [index for index, text in enumerate(texts) if text.stop is None]:
            steps = _round(texts, sessions, open_ones, clock, written)
            written = sum(len(step.output) for _, step in steps) / len(steps)
            for index, step in steps:
                step.prefill_milliseconds, spent[index] = spent[index], 0.0
                yield index, step
                clock.lap()  # the caller's time is not engine time
    finally:
        for text in texts:
            text.drafter.close()


def _check_shares_passes(drafter: Drafter) -> None:
    if drafter.loop != "speculative":
        raise UserError(
            f"{drafter.title} writes in a loop of its own and cannot share passes with other texts."
        )


def _begin(
    target: LanguageModel, texts: Sequence[Text], clock: Clock
) -> tuple[SeparateSessions, list[float]]:
    """Read every prompt; returns the sessions and the milliseconds each text is charged for that."""
    layers = [tuple(text.drafter.feature_layers) for text in texts]
    sessions = sessions_of(target, max(text.capacity for text in texts), layers)
    readings: dict[tuple, PromptReading] = {}
    for text, own in zip(texts, layers, strict=True):
        read = tuple(text.context[:-1])
        readings.setdefault(read, PromptReading(read)).expect(own, text.drafter.feature_rows)
    spent = []
    for text, session in zip(texts, sessions.sessions, strict=True):
        reading = readings[tuple(text.context[:-1])]
        features = reading.fill(session, text.drafter.feature_rows)
        charged = reading.charge(clock.lap())
        text.begin(session, features)
        spent.append(charged + clock.lap())
    return sessions, spent


def _round(
    texts: Sequence[Text],
    sessions: SeparateSessions,
    open_ones: list[int],
    clock: Clock,
    written: float,
) -> list[tuple[int, Step]]:
    """written: mean number of tokens that a text wrote in the last round."""
    drafts, times = {}, {}
    for index in open_ones:
        drafts[index] = texts[index].draft()
        times[index] = {"draft": clock.lap()}
    seen = sessions.look_at(drafts)
    share = clock.lap() / len(open_ones)
    load = Load(
        len(drafts),
        sum(draft.count for draft in drafts.values()),
        sum(draft.position for draft in drafts.values()),
        written,
    )
    # all verdicts are under way before the first is waited for
    pending = {index: texts[index].judge(draft, seen[index]) for index, draft in drafts.items()}
    steps = []
    for index, draft in drafts.items():
        times[index]["verify"] = share
        taken = texts[index].settle(draft, pending[index], seen[index], times[index], clock, load)
        steps.append((index, taken))
    return steps
