"""How soon after a press of Run the real chat model's first token comes; ``python -m tests.viz.measure --first-token`` prints
it.

The clock starts when Run is pressed and stops when the server sends the first step. The page itself is ready before.
"""

import tempfile
import time

from presets.fetched import SETTING, check_there, root
from tests.app.serving import serving
from tests.app.wire import Wire

MODEL = "smollm2"
PROMPTS = (
    "Why is the sky blue during the day and red in the evening?",
    "Name three rivers of Europe, and a town on each of them.",
    "Write a Python function that returns the median of a list.",
    "Tell me a short story about a lighthouse keeper.",
)
COLD, WARM = "cold caches", "warm"
AIMS = {COLD: 6.0, WARM: 1.0}
"""Seconds."""


def first_tokens() -> dict[str, dict[str, list[float]]]:
    """Return drafter -> state -> seconds until the first token. The state is cold for the first prompt of a new server
    with an empty cache folder, and warm for the prompts after it. Raises UserError if the model was not fetched."""
    check_there(MODEL)
    found = {}
    for drafter in ("none", "chain"):
        with tempfile.TemporaryDirectory() as empty:
            settings = {"DRAFTSCOPE_CACHE": empty, SETTING: str(root())}
            with serving(**settings) as server:
                wire = Wire(server.url)
                wire.ready()
                first, *others = [_first(wire, prompt, drafter) for prompt in PROMPTS]
                wire.leave()
                found[drafter] = {COLD: [first], WARM: others}
    return found


def _first(wire: Wire, prompt: str, drafter: str) -> float:
    """Return the seconds until the first token of a run. The run is then read to its end, so that the next run begins
    on an idle server."""
    began, taken = time.monotonic(), None
    for trace, state, message in wire.run(prompt, drafter, 24, models=MODEL):
        if state == "error":
            raise RuntimeError(message)
        if taken is None and trace and '"kind":"step"' in trace:
            taken = time.monotonic() - began
    if taken is None:
        raise RuntimeError("the run ended without a step")
    return taken
