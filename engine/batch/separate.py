"""Several texts, each in a session of its own that is read in passes of its own."""

from collections.abc import Mapping

from engine.core.load import RowsOf
from engine.core.seen import Draft, Seen
from engine.model.language_model import LanguageModel
from engine.model.session import Session


class SeparateSessions:
    """Up to ``places`` sessions, read one after the other.

    capacity: columns for the longest of the texts and a tree.
    """

    def __init__(self, model: LanguageModel, capacity: int, places: int) -> None:
        self.model, self._capacity = model, capacity
        self.sessions: list[Session | None] = [None] * places

    def open(self, place: int, features: tuple[int, ...]) -> Session:
        """A new session, which replaces the earlier session at this place. features: layers whose states are
        requested."""
        self.sessions[place] = self.model.session(self._capacity, features)
        return self.sessions[place]

    @property
    def rows_of(self) -> RowsOf:
        """The function from the rows that each text needs to the rows of a round."""
        return sum

    def look_at(self, drafts: Mapping[int, Draft]) -> dict[int, Seen]:
        """Read the root and the tree of each of these texts, by place, as ``Session.look`` does."""
        return {place: self.sessions[place].look(draft) for place, draft in drafts.items()}
