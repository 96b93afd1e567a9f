"""The one loop: draft, verify in one target pass, judge, commit. It is a generator.

Pause is not calling next, single-step is calling it once, cancel is closing it.
"""

from collections.abc import Iterator, Sequence

from engine.drafters.base import Drafter
from engine.sampling import Sampling
from engine.step import Clock, Step
from engine.target.language_model import LanguageModel
from engine.target.prompt import PromptReading
from engine.text import Wanted, Writing
from engine.verifiers.base import Verifier


def decode(
    target: LanguageModel,
    drafter: Drafter,
    verifier: Verifier,
    sampling: Sampling,
    prompt: Sequence[int],
    max_new_tokens: int,
    watched: bool = True,
    reading: PromptReading | None = None,
) -> Iterator[Step]:
    """Write up to max_new_tokens after the prompt (at least one token long), a step at a time.

    Each step is one full-depth pass of the target over the root and the tree.

    watched: False if no one records the steps. On a target with static buffers (``engine.gpu``)
    they are then judged on the device, and only the ids of what was kept come back: no logits, no p,
    no judgements, tokens of -1 for what was drafted on the device and not kept. The text is the same.
    reading: of all of the prompt but its last token, where other texts begin with the same one.
    """
    writing = Writing(target, Wanted(drafter, verifier, sampling, prompt, max_new_tokens), watched)
    clock = Clock(target.device, precise=not writing.on_device)
    try:
        spent = begin(writing, target, reading or PromptReading(prompt[:-1]), clock)
        del reading  # the last text to begin frees it
        while writing.stop is None:
            draft = writing.draft()
            times = {"draft": clock.lap()}
            looked = writing.session.look(draft)
            times["verify"] = clock.lap()
            step = writing.settle(draft, writing.judge(draft, looked), looked, times, clock)
            step.prefill_milliseconds, spent = spent, 0.0
            yield step
            clock.lap()  # what happened outside is not engine time
    finally:
        writing.drafter.close()


def begin(writing: Writing, target: LanguageModel, reading: PromptReading, clock: Clock) -> float:
    """Let it stand behind its prompt; returns the milliseconds that it is to be charged."""
    session = target.session(writing.capacity, writing.drafter.feature_layers)
    features = reading.fill(session)
    spent = reading.charge(clock.lap())
    writing.begin(session, features)
    return spent + clock.lap()
