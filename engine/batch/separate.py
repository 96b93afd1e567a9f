"""Several texts, each with a session of its own and passes of its own."""

from collections.abc import Mapping

from engine.core.load import RowsOf
from engine.core.seen import Draft, Seen
from engine.model.language_model import LanguageModel
from engine.model.session import Session


class SeparateSessions:
    """Up to ``places`` sessions, whose passes are run one after the other.

    capacity: the number of columns (tokens) of each session, enough for the longest of the texts and a draft tree.
    """

    def __init__(self, model: LanguageModel, capacity: int, places: int) -> None:
        self.model, self._capacity = model, capacity
        self.sessions: list[Session | None] = [None] * places

    def open(self, place: int, features: tuple[int, ...]) -> Session:
        """Open a new session, which replaces the earlier session at this place. features: the layers whose hidden
        states the text's drafter requests."""
        self.sessions[place] = self.model.session(self._capacity, features)
        return self.sessions[place]

    @property
    def rows_of(self) -> RowsOf:
        """A function from the number of rows that each text needs to the number of rows that a round computes, here
        their sum."""
        return sum

    def look_at(self, drafts: Mapping[int, Draft]) -> dict[int, Seen]:
        """Run a pass over the root and the draft tree of each of these texts, with ``Session.look``. The drafts and the
        results are keyed by the text's place."""
        return {place: self.sessions[place].look(draft) for place, draft in drafts.items()}
