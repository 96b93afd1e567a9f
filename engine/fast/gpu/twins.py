"""Drafters for unrecorded texts, whose choices stay on the device as far as possible."""

from functools import singledispatch

from engine.core.drafter import Drafter


@singledispatch
def device_twin(drafter: Drafter) -> Drafter:
    """The drafter for an unrecorded text: the given one, or a twin that proposes the same tree with
    fewer copies to the host. The given drafter must not have begun yet.

    ``prompt_lookup`` is its own twin, because the host learns the kept ids anyway, and looking them
    up in the host's index costs less than a launch.
    """
    return drafter
