"""Several texts at once: one pass of the target a round, over the trees of all of them."""

from collections.abc import Iterator, Sequence

from engine.batch.joint import Joint
from engine.step import Clock, Step
from engine.target.language_model import LanguageModel
from engine.target.prompt import PromptReading
from engine.text import Wanted, Writing


def decode_together(
    target: LanguageModel, wanted: Sequence[Wanted], watched: bool = True
) -> Iterator[tuple[int, Step]]:
    """Write these texts, a step of each that has not ended a round: (index in ``wanted``, step).

    Every text is the one that ``decode`` writes alone, with a drafter instance of its own. Texts
    that begin with the same prompt read it once. watched: as for ``decode``.

    Milliseconds of a step: drafting, judging and committing are the text's own; of the pass it has
    an equal share, so that the steps of a round add up to the round.
    """
    writings = [Writing(target, one, watched) for one in wanted]
    clock = Clock(target.device, precise=not all(one.on_device for one in writings))
    try:
        joint, spent = _begin(target, writings, clock)
        while open_ones := [index for index, one in enumerate(writings) if one.stop is None]:
            for index, step in _round(writings, joint, open_ones, clock):
                step.prefill_milliseconds, spent[index] = spent[index], 0.0
                yield index, step
                clock.lap()  # what happened outside is not engine time
    finally:
        for writing in writings:
            writing.drafter.close()


def _begin(
    target: LanguageModel, writings: Sequence[Writing], clock: Clock
) -> tuple[Joint, list[float]]:
    """Everyone behind its prompt, and the milliseconds each is charged for that."""
    layers = [tuple(writing.drafter.feature_layers) for writing in writings]
    joint = Joint(target, max(writing.capacity for writing in writings), layers)
    readings: dict[tuple, PromptReading] = {}
    for writing, own in zip(writings, layers, strict=True):
        read = tuple(writing.context[:-1])
        readings.setdefault(read, PromptReading(read)).expect(own)
    spent = []
    for writing, session in zip(writings, joint.sessions, strict=True):
        reading = readings[tuple(writing.context[:-1])]
        features = reading.fill(session)
        charged = reading.charge(clock.lap())
        writing.begin(session, features)
        spent.append(charged + clock.lap())
    return joint, spent


def _round(
    writings: Sequence[Writing], joint: Joint, open_ones: list[int], clock: Clock
) -> list[tuple[int, Step]]:
    drafts, times = {}, {}
    for index in open_ones:
        drafts[index] = writings[index].draft()
        times[index] = {"draft": clock.lap()}
    looked = joint.look_at(drafts)
    share = clock.lap() / len(open_ones)
    # all verdicts are on their way before the first is waited for
    coming = {index: writings[index].judge(draft, looked[index]) for index, draft in drafts.items()}
    steps = []
    for index, draft in drafts.items():
        times[index]["verify"] = share
        taken = writings[index].settle(draft, coming[index], looked[index], times[index], clock)
        steps.append((index, taken))
    return steps
