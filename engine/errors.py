"""The one exception that is meant for users."""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(Exception):
    """An error that the user can correct. The message is one clear sentence.

    The command line prints it and exits with code 2; the page shows it. Any other exception is our own mistake and
    keeps its traceback.
    """


MOST_NAMED = 8  # the most names that one sentence lists


LISTED = "`python -m engine list` names all."


def unknown(noun: str, given: str, known: Iterable[str], where: str = "") -> UserError:
    """The error for a name that is not among ``known``. The message lists all known names if they are few, otherwise
    those nearest to ``given``.

    where: a sentence that says where all known names are listed.
    """
    names = list(known)
    if len(names) <= MOST_NAMED:
        return UserError(f"There is no {noun} {given!r}; known are: {', '.join(names)}.")
    near = get_close_matches(given, names, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {len(names)} of them."
    return UserError(f"There is no {noun} {given!r}; {hint} {where}".rstrip())
