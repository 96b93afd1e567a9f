"""A tuning: which drafter, how many tokens a step, for how many texts at a time, and why.

``Tuning(request).lines()`` yields plain JSON-able dicts, described in docs/tuning.md: ``tuning`` first, then ``cost``,
``acceptance``, ``setting`` and ``estimate`` lines as they are measured, ``progress`` between them, and ``answer`` at the end.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.tune.tuning_request import TuningRequest

Line = dict


class Tuning:
    """Nothing is opened or measured before the first line is asked for.

    A later line replaces an earlier one of the same kind, drafter, options, size and prompt_kind (``acceptance``), or texts
    (``setting``), machine and texts (``estimate``).
    """

    def __init__(self, request: TuningRequest) -> None:
        self.request = request

    def lines(self) -> Iterator[Line]:
        """All lines. Closing the generator stops the work at once; what the record holds stays. Raises UserError, one
        sentence, for models, prompts or a record that do not fit."""
        raise NotImplementedError
        yield {}

    def answer_so_far(self) -> list[Line]:
        """After ``lines`` was closed: the ``setting`` lines and the ``answer`` that follow from what was measured. They are
        kept in the record as well. Empty if nothing was measured."""
        return []
