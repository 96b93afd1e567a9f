"""A suffix automaton: an index of all runs of tokens in one or several texts, with counts of the tokens that follow
each run.

Blumer et al., The Smallest Automaton Recognizing the Subwords of a Text (1985). A state stands for all runs of tokens
that end at the same set of positions. These runs are the longest of them and its suffixes down to some length. The next
shorter suffix also ends at other positions, so another state stands for it. The link of a state leads to that other
state. The automaton has at most two states and three transitions per token, and adding a token takes constant time on
average.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

START = 0  # the state of the empty run
WALK = 64  # the most links along which a new occurrence is counted; only repetitive texts have more
STATE_BYTES, TRANSITION_BYTES = 320, 90  # measured with sys.getsizeof on CPython 3.11


@dataclass(frozen=True)
class Match:
    """A suffix of the context that occurs in the automaton's texts. state: the state that stands for it. length: its
    number of tokens."""

    state: int
    length: int


class SuffixAutomaton:
    def __init__(self) -> None:
        self.next: list[dict[int, int]] = [{}]
        self.link = [-1]
        self.length = [0]
        self.count = [0]
        self.transitions = 0
        self._last = START

    def __len__(self) -> int:
        return len(self.next)

    @property
    def nbytes(self) -> int:
        return len(self) * STATE_BYTES + self.transitions * TRANSITION_BYTES

    def separate(self) -> None:
        """End the current text, so that no run continues from this text into the next."""
        self._last = START

    def read(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            self._last = self._extended(token)
            self._count_occurrence()

    def _extended(self, token: int) -> int:
        """Append this token to the current text; returns the state that stands for the whole text."""
        state_after = self.next[self._last].get(token)
        if state_after is not None:  # an earlier text begins with the same tokens
            return self._exactly(self._last, state_after, token)
        new = self._state(self.length[self._last] + 1)
        state = self._last
        while state != -1 and token not in self.next[state]:
            self.next[state][token] = new
            self.transitions += 1
            state = self.link[state]
        self.link[new] = START
        if state != -1:
            self.link[new] = self._exactly(state, self.next[state][token], token)
        return new

    def _exactly(self, state: int, target: int, token: int) -> int:
        """Return a state for ``token`` after the runs of ``state``, of length ``length[state] + 1`` at most. This is
        ``target``, to which the transition leads. But if ``target`` also stands for longer runs, a new state is split
        off for the shorter runs and returned."""
        if self.length[target] == self.length[state] + 1:
            return target
        part = self._state(self.length[state] + 1)
        self.next[part] = dict(self.next[target])
        self.transitions += len(self.next[part])
        self.link[part], self.count[part] = self.link[target], self.count[target]
        self.link[target] = part
        while state != -1 and self.next[state].get(token) == target:
            self.next[state][token] = part
            state = self.link[state]
        return part

    def _state(self, length: int) -> int:
        self.next.append({})
        self.link.append(START)
        self.length.append(length)
        self.count.append(0)
        return len(self.next) - 1

    def _count_occurrence(self) -> None:
        """Add 1 to the count of each state that stands for a suffix of the current text, along at most ``WALK``
        links."""
        state = self._last
        for _ in range(WALK):
            if state == START:
                break
            self.count[state] += 1
            state = self.link[state]

    def repeated(self) -> Match:
        """Return the longest suffix of the current text that also occurs earlier."""
        state = max(self.link[self._last], START)
        return Match(state, self.length[state])

    def follow(self, match: Match, token: int) -> Match:
        """Return the longest suffix of the context after ``token`` is appended that occurs in the automaton's texts.
        match: the longest such suffix before ``token`` is appended."""
        state, length = match.state, match.length
        while state != START and token not in self.next[state]:
            state = self.link[state]
            length = self.length[state]
        if token in self.next[state]:
            return Match(self.next[state][token], length + 1)
        return Match(START, 0)

    def shorter(self, match: Match) -> Iterator[Match]:
        """Yield the match, and then its shorter suffixes that also end at other positions in the texts, the longest
        first."""
        state, length = match.state, match.length
        while state != START:
            yield Match(state, length)
            state = self.link[state]
            length = self.length[state]

    def followers(self, state: int) -> dict[int, int]:
        """Return the transitions of a state: next token -> next state."""
        return self.next[state]
