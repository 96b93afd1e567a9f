"""The loops that can write a text. A drafter names its loop; all loops yield the same kind of steps."""

from collections.abc import Iterator

from engine.core.decode import decode
from engine.core.overlapped import overlapped
from engine.core.prepared import prepared
from engine.core.prompt import PromptReading
from engine.core.searching import searching
from engine.core.step import Step
from engine.core.switching import switching
from engine.core.text import TextRequest
from engine.model.checkpoint_rules import with_rules
from engine.model.language_model import LanguageModel

LOOPS = {
    "speculative": decode,
    "switching": switching,
    "overlapped": overlapped,
    "prepared": prepared,
    "searching": searching,
}
"""Name -> a generator over (target, request, recorded, reading).

``speculative``: draft, verify in one pass of the target, judge, commit, one after the other.
``switching``: one token per step, written by the drafter, unchecked, or by the target.
``overlapped``: while the target verifies one draft, the draft model already drafts the next.
``prepared``: while the target verifies, the drafter prepares drafts for the possible outcomes.
``searching``: the drafter writes several texts with the target itself, and chooses.

A step need not contain a pass of the target (``Step.passes`` counts passes by model); a step without one has no p, no
judgement and no final token.
"""


def run_loop(
    target: LanguageModel,
    request: TextRequest,
    recorded: bool = True,
    reading: PromptReading | None = None,
) -> Iterator[Step]:
    """Write a text in the loop that its drafter names; see ``engine.core.decode.decode``."""
    loop = LOOPS[request.drafter.loop]
    return loop(target, with_rules(target, request), recorded, reading)
