"""Sessions of one model for several texts, and the rounds in which they are read."""

from collections.abc import Mapping, Sequence
from functools import singledispatch

from engine.target.language_model import LanguageModel
from engine.target.seen import Draft, Seen
from engine.target.session import Session


class SeparateSessions:
    """B sessions, read one after the other."""

    def __init__(self, sessions: Sequence[Session]) -> None:
        self.sessions = list(sessions)

    def look_at(self, drafts: Mapping[int, Draft]) -> dict[int, Seen]:
        """Read root and tree of each of these sequences, by index, as ``Session.look`` does."""
        return {index: self.sessions[index].look(draft) for index, draft in drafts.items()}


@singledispatch
def sessions_of(
    model: LanguageModel, capacity: int, features: Sequence[tuple[int, ...]]
) -> SeparateSessions:
    """Sessions for as many texts as there are entries in ``features``, each entry as for a session.

    capacity: columns for the longest of the texts and a tree.
    """
    return SeparateSessions([model.session(capacity, layers) for layers in features])
