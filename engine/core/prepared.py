"""The prepared loop: while the target checks a draft, the drafter prepares drafts for its possible outcomes.

Kumar et al., "Speculative Speculative Decoding" (2026). The loop is a generator, and nothing runs between two steps.
"""

from collections.abc import Iterator
from functools import partial

from engine.core.decode import begin
from engine.core.overlapped import stage_times
from engine.core.prompt import PromptReading
from engine.core.simultaneous import pair_on
from engine.core.step import Clock, Span, Step
from engine.core.target import Target
from engine.core.text import Text, TextRequest


def prepared(
    target: Target,
    request: TextRequest,
    recorded: bool = True,
    reading: PromptReading | None = None,
) -> Iterator[Step]:
    """Write the requested text and yield each step; see ``engine.core.decode.decode``.

    Each step is a step of ``decode``, but ``Drafter.prepare`` runs at the same time as the target's pass, on another
    thread or another stream of a GPU. Milliseconds add up to elapsed time: ``verify`` is the target's pass, ``draft``
    the time in which only the drafter ran. Exact with every rule that is exact for the drafter's kind of draw.
    """
    text = Text(target, request)
    drafter, clock = text.drafter, Clock(target.device, precise=True)
    elapsed = spent = begin(text, target, reading or PromptReading(request.prompt[:-1]), clock)
    del reading  # freed once the last text has begun
    pair = pair_on(target.device)
    try:
        while text.stop is None:
            attempt, alone = text.draft(), clock.lap()
            seen, side = pair.run(partial(text.session.look, attempt.draft), drafter.prepare)
            times = stage_times(seen, clock.lap())
            attempt.milliseconds.update(times, draft=alone + times["draft"])
            step = text.settle(text.judge(attempt, seen.value), clock)
            start = elapsed + alone
            step.spans = [
                Span("draft", "drafts", elapsed, start),
                Span(
                    "target",
                    f"verifies {attempt.draft.count} rows",
                    start + seen.start,
                    start + seen.end,
                ),
                Span("draft", "prepares", start + side.start, start + side.end),
            ]
            elapsed += sum(step.milliseconds.values())
            step.prefill_milliseconds, spent = spent, 0.0
            yield step
            clock.lap()  # the caller's time is not engine time
    finally:
        pair.close()
        drafter.close()
