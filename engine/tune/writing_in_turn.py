"""Lets candidates take turns at continuing the same prompts, so that a busy moment of the machine slows all
candidates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.chat.turns import ChatPrompt
from engine.core.prompt import PromptReading
from engine.core.sampling import Sampling
from engine.tune.candidates import Candidate, Key
from engine.tune.kept_counts import Counts
from engine.tune.opened_tuning import OpenedTuning

WARM_UP = 8  # tokens that a candidate writes before it is timed
EACH = 8  # candidates after which plain decoding writes again


class Writers:
    """Writes the texts of a tuning on this machine. All candidates share the target's pass over a prompt."""

    def __init__(self, opened: OpenedTuning, sampling: Sampling, new_tokens: int) -> None:
        self._opened, self._text = opened, (sampling, new_tokens)
        self._warm: set[Key] = set()

    def write(
        self, plain: Candidate, candidates: Sequence[Candidate], upto: int
    ) -> Iterator[Candidate]:
        """Let each candidate continue those of the first ``upto`` prompts that it has not continued yet. On each such
        prompt, plain decoding writes first, and again after every ``EACH`` candidates, so that each candidate is
        compared with a text of plain decoding written at about the same time. Yields the candidate, which may be plain
        decoding, after each text that was added to its counts."""
        for place, (asked, prompt) in enumerate(self._opened.prompts[:upto]):
            reading = PromptReading(prompt.tokens[:-1])
            turn = place % max(1, len(candidates))
            lacking = [candidate for candidate in candidates if candidate.prompts <= place]
            lacking = [*lacking[turn:], *lacking[:turn]]
            for number, candidate in enumerate(lacking):
                if number % EACH == 0:
                    plainly = self._counts(plain, prompt, reading)
                    if plain.prompts <= place:
                        plain.add(asked.kind, plainly, plainly)
                        yield plain
                candidate.add(asked.kind, self._counts(candidate, prompt, reading), plainly)
                yield candidate

    def _counts(self, candidate: Candidate, prompt: ChatPrompt, reading: PromptReading) -> Counts:
        models, (sampling, new_tokens) = self._opened.models, self._text
        if candidate.key not in self._warm:
            self._warm.add(candidate.key)
            candidate.write(models, prompt, sampling, WARM_UP)
        return candidate.write(models, prompt, sampling, new_tokens, reading)
