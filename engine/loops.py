"""The loops in which a text can be written. A drafter names its own; all of them yield the same steps."""

import importlib
from collections.abc import Iterator

from engine.step import Step
from engine.target.language_model import LanguageModel
from engine.target.prompt import PromptReading
from engine.text import TextRequest

LOOPS = {
    "speculative": "engine.decode:decode",
}
"""Name -> module and function. A function takes (target, request, recorded, reading)."""


def run_loop(
    target: LanguageModel,
    request: TextRequest,
    recorded: bool = True,
    reading: PromptReading | None = None,
) -> Iterator[Step]:
    """Write a text in the loop that its drafter belongs to; see ``engine.decode.decode``."""
    module, name = LOOPS[request.drafter.loop].split(":")
    loop = getattr(importlib.import_module(module), name)
    return loop(target, request, recorded, reading)
