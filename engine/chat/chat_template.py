"""Renders conversations with a chat template.

A template comes with a model and is a program, so a bounded process renders it (``engine.bounded.bounded_process``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.bounded.bounded_process import BoundedProcess
from engine.errors import UserError

PROGRAM = Path(__file__).with_name("template_process.py")


@dataclass(frozen=True)
class Bounds:
    """Limits for one rendering: seconds of computing, megabytes of address space, characters of the text."""

    seconds: float = 3.0
    megabytes: int = 1024
    characters: int = 1_000_000


class Renderer:
    """Renders templates, one at a time."""

    def __init__(self, bounds: Bounds = Bounds()) -> None:
        self._process = BoundedProcess(
            PROGRAM, bounds.seconds, (bounds.megabytes, bounds.characters), "templates are rendered"
        )

    def render(
        self,
        template: str,
        turns: Sequence[Mapping[str, str]],
        special_tokens: Mapping[str, object],
        asks: bool,
    ) -> str:
        """The rendered text. asks: whether the text ends where the assistant's answer begins.

        Raises UserError. Its message is a clause about the template's fault, with which the caller ends a sentence.
        """
        answer = self._process.answer(
            {
                **special_tokens,
                "conversations": [list(turns)],
                "chat_template": template,
                "add_generation_prompt": asks,
            }
        )
        if "text" not in answer:
            raise UserError(answer["refusal"])
        return answer["text"]

    def close(self) -> None:
        """End the process if there is one."""
        self._process.close()


renderer = Renderer()
