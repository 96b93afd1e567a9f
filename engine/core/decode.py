"""The speculative loop: draft, verify in one target pass, judge, commit. The loop is a generator.

To pause, do not call next; to single-step, call next once; to cancel, close the generator.
"""

from collections.abc import Iterator
from functools import partial

from engine.core.prompt import PromptReading
from engine.core.step import Clock, Step
from engine.core.target import Target
from engine.core.text import Text, TextRequest, text_of


def decode(
    target: Target,
    request: TextRequest,
    recorded: bool = True,
    reading: PromptReading | None = None,
) -> Iterator[Step]:
    """Write the requested text and yield each step.

    Each step is one full-depth pass of the target over the root and the tree.

    recorded: False if no one records the steps. Faster ways of making passes may then leave on the device everything
    but the ids of the kept tokens: no logits, no p, no judgements. The text is the same.
    reading: the target's pass over the prompt without its last token, where other texts share this pass, or where it
    must not be joined with the first draft's pass. With None, the first pass over a draft may also run over the prompt;
    the time of this pass then counts as time of reading the prompt.
    """
    text = text_of(target, request, recorded)
    clock = Clock(target.device, precise=text.recorded)
    spent = begin(text, target, reading, clock)
    del reading  # freed once the last text has begun
    try:
        while text.stop is None:
            attempt = text.draft()
            times = attempt.milliseconds
            times["draft"] = clock.lap()
            opens = text.session.postponed > 0
            seen = text.session.look(attempt.draft)
            times["verify"] = clock.lap()
            if opens:
                spent, times["verify"] = spent + times["verify"], 0.0
            step = text.settle(text.judge(attempt, seen), clock)
            step.prefill_milliseconds, spent = spent, 0.0
            yield step
            clock.lap()  # the caller's time is not engine time
    finally:
        text.drafter.close()


def begin(text: Text, target: Target, reading: PromptReading | None, clock: Clock) -> float:
    """Read the prompt and start the drafter. Returns the milliseconds charged for reading the prompt. reading: see
    ``decode``."""
    drafter = text.drafter
    fresh = partial(target.session, text.capacity, drafter.feature_layers)
    constraint = text.request.constraint
    used_early = drafter.uses_target or (constraint is not None and constraint.looks_ahead)
    if reading is None and not drafter.feature_layers and not used_early:
        session = fresh()
        session.prefill(text.request.prompt[:-1], later=True)
        text.begin(session, None)
        return clock.lap()
    reading = reading or PromptReading(text.request.prompt[:-1])
    session = reading.session(fresh, drafter.feature_layers)
    features = reading.fill(session, drafter.feature_rows)
    spent = reading.charge(clock.lap())
    text.begin(session, features)
    return spent + clock.lap()
