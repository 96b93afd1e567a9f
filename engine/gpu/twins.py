"""Drafters whose choices stay on the device as far as they can, in the place of those that record."""

from functools import singledispatch

from engine.drafters.base import Drafter


@singledispatch
def device_twin(drafter: Drafter) -> Drafter:
    """The drafter for a text that nobody records: itself, or a twin that proposes the same tree and
    crosses to the host less often. The drafter has not begun yet.

    ``prompt_lookup`` is its own twin: the host learns the kept ids anyway, and looking them up in
    the host's index costs less than a launch.
    """
    return drafter
