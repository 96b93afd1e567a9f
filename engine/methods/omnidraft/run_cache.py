"""The runs of a draft model's tokens that equal one token of a target with another vocabulary, learned from the text
that the target writes.

This is the cache of OmniDraft (Ramakrishnan et al., 2025). Runs of one token need no learning, because both
vocabularies have the token. A longer run is entered when its token occurs in a text. When the cache is full, the run
that occurred longest ago is dropped.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable

import torch
from torch import Tensor

from engine.methods.shared.spelling import Run, Spelling

MOST_RUNS = 8192
RUN_BYTES = 400  # about the bytes that a run takes in the three tables together


class RunCache:
    def __init__(self, spelling: Spelling, most: int = MOST_RUNS) -> None:
        self._spelling, self._most = spelling, most
        self._runs: OrderedDict[Run, int] = OrderedDict()
        self._longer: Counter[Run] = Counter()  # how many longer runs begin with this one
        self._behind: dict[
            Run, dict[int, int]
        ] = {}  # run without its last token -> last token -> the target's token

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def nbytes(self) -> int:
        return RUN_BYTES * len(self._runs)

    def see(self, tokens: Iterable[int]) -> int:
        """Enter the runs of the target's tokens that occurred in a text; return how many of these runs are new."""
        new = 0
        for token in tokens:
            run = self._spelling.runs[token]
            if len(run) > 1:
                new += run not in self._runs
                self._enter(run, token)
        return new

    def _enter(self, run: Run, token: int) -> None:
        if run in self._runs:
            return self._runs.move_to_end(run)
        if len(self._runs) >= self._most:
            self._leave(*self._runs.popitem(last=False))
        self._runs[run] = token
        self._longer.update(run[:length] for length in range(1, len(run)))
        self._behind.setdefault(run[:-1], {})[run[-1]] = token

    def _leave(self, run: Run, token: int) -> None:
        for begun in (run[:length] for length in range(1, len(run))):
            self._longer[begun] -= 1
            if not self._longer[begun]:
                del self._longer[begun]
        ends = self._behind[run[:-1]]
        del ends[run[-1]]
        if not ends:
            del self._behind[run[:-1]]

    def token(self, run: Run) -> int | None:
        """Return the target's token that this run equals. None if the run equals no token, or if it is not in the
        cache."""
        return self._spelling.same.get(run[0]) if len(run) == 1 else self._runs.get(run)

    def grows(self, run: Run) -> bool:
        """Whether the cache has a longer run that begins with this run."""
        return self._longer[run] > 0

    def closing(self, begun: Run) -> tuple[Tensor, Tensor]:
        """Return two tensors for the runs that consist of ``begun`` and one more token and that are not the beginning
        of a longer run in the cache. The first tensor holds the last token of each such run, in the draft model's
        vocabulary, [N]; the second holds the target's token that the run equals, [N]."""
        ends = self._behind.get(begun, {}) if begun else self._spelling.same
        pairs = [(last, token) for last, token in ends.items() if not self.grows((*begun, last))]
        lasts, tokens = zip(*pairs, strict=True) if pairs else ((), ())
        return torch.tensor(lasts, dtype=torch.long), torch.tensor(tokens, dtype=torch.long)
